"""What in a history happened at a moment, as marks of a timeline. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from headway.agents.timeline_views import MarkKind, MarkView
from headway.sagas import events as e

SETTLING: dict[type[e.Event], MarkKind] = {
    e.TaskSucceeded: "succeeded",
    e.TaskCompensated: "compensated",
    e.TaskParked: "parked",
    e.TaskFailedToCompensate: "failed_to_compensate",
}
CANCELLED = "cancelled"  # the reason of who cancels without one


def moment(ms: int) -> datetime:
    """A time in ms since 1970, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def moment_or_none(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)


def marks_of(event: e.Event) -> Iterable[MarkView]:
    """None, for most events; what a person did has their name."""
    at = moment(event.at)
    match event:
        case e.TaskSubmitted():
            yield MarkView(at=at, kind="submitted")
        case e.SignalReceived():
            yield MarkView(at=at, kind="signal", name=event.name, by=event.by)
        case e.StepApproved() | e.StepRejected():
            kind: MarkKind = "approval" if isinstance(event, e.StepApproved) else "rejection"
            yield MarkView(at=at, kind=kind, step=event.step, by=event.by, reason=event.reason)
        case e.StepsAppended():
            names = ", ".join(step.name for step in event.steps)
            yield MarkView(at=at, kind="hand_off", step=event.by, name=names)
        case e.StepSkipped():
            yield MarkView(at=at, kind="skipped", step=event.step)
        case e.ConditionFailed():
            kind = "condition_failed"
            yield MarkView(at=at, kind=kind, step=event.step, name=event.error.type)
        case e.TaskHeld():
            kind = "hold"
            yield MarkView(at=at, kind=kind, step=event.step, name=event.kind, reason=event.reason)
        case e.LateSuccess():
            yield MarkView(at=at, kind="late_success", step=event.step)
        case e.TaskSucceeded() | e.TaskCompensated():
            yield MarkView(at=at, kind=SETTLING[type(event)])
        case e.TaskParked() | e.TaskFailedToCompensate():
            yield MarkView(at=at, kind=SETTLING[type(event)], reason=event.reason)
        case _:
            yield from _marks_of_people(event)


def _marks_of_people(event: e.Event) -> Iterable[MarkView]:
    at = moment(event.at)
    match event:
        case e.RecoveryStarted():
            cancelled = event.by or event.reason == CANCELLED
            yield MarkView(
                at=at,
                kind="cancel" if cancelled else "recovery",
                step=event.step,
                by=event.by,
                reason=event.reason,
            )
        case e.OutputRejected():
            names = ", ".join(event.steps)
            kind: MarkKind = "output_rejected"
            yield MarkView(at=at, kind=kind, name=names, by=event.by, reason=event.reason)
        case e.TaskMoved():
            name = f"version {event.origin} to {event.target}"
            yield MarkView(at=at, kind="move", name=name, by=event.by, reason=event.reason)
        case e.TaskResumed():
            name = event.step or ", ".join(event.steps)
            yield MarkView(at=at, kind="resume", name=name, by=event.by, reason=event.reason)
        case e.StepSettled():
            yield MarkView(
                at=at,
                kind="settle",
                step=event.step,
                name=event.status.value,
                by=event.by,
                reason=event.reason,
            )
        case e.TaskForked():
            yield MarkView(
                at=at,
                kind="fork",
                step=event.step,
                name=event.origin,
                by=event.by,
                reason=event.reason,
            )
