"""From a history to what happened in time: bars, marks and the chain of compensations. Pure.

Always holds: each attempt that was dispatched has one bar, however often it was taken over or
published again; what is over has an end.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from headway.agents.timeline_views import (
    BarView,
    CompensationLink,
    MarkView,
    Outcome,
    StepLine,
    TakeOverView,
    TimelineView,
)
from headway.coordinator.commands import agent_of
from headway.coordinator.family import child_id
from headway.coordinator.timeline_marks import SETTLING, marks_of, moment
from headway.sagas import events as e
from headway.sagas.definition import Definition
from headway.sagas.plan import planned
from headway.sagas.replay import replay
from headway.sagas.step import Step
from headway.sagas.task import (
    Phase,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
    may_need_compensation,
)

_UNSETTLING = (e.TaskResumed, e.StepSettled, e.RecoveryStarted)


def timeline(
    task: UUID, definition: Definition, history: Iterable[e.Event], now_ms: int
) -> TimelineView:
    """What happened to a task until now (ms since 1970). `definition` is the version that it runs
    now, with or without what its plan appended; `history` is whole, from its submission on."""
    events = tuple(history)
    state = replay(definition, events)
    plan = planned(definition, state.beside.plan)
    drawing = _Drawing(task, plan)
    for event in events:
        drawing.draw(event)
    appended = {each.step.name: each.by for each in state.beside.plan}
    return TimelineView(
        task=task,
        saga=plan.name,
        saga_version=plan.version,
        status=state.status.value,
        version=state.version,
        now=moment(now_ms),
        began_at=moment(events[0].at),
        settled_at=drawing.settled_at,
        steps=[
            _line(step, state, drawing.bars[name], appended.get(name, ""))
            for name, step in plan.steps.items()
        ],
        holds=drawing.holds,
        compensations=_chain(plan, state, drawing),
        marks=drawing.marks,
    )


class _Drawing:
    """The picture while the history goes over it, one event after another."""

    def __init__(self, task: UUID, plan: Definition) -> None:
        self.bars: dict[str, list[BarView]] = {name: [] for name in plan.steps}
        self.holds: list[BarView] = []
        self.marks: list[MarkView] = []
        self.settled_at: datetime | None = None
        self._task = task
        self._steps = plan.steps
        self.undone: list[str] = []  # steps, in the order in which their compensations began
        self._children: dict[str, int] = {}  # by step: number of its latest child

    def draw(self, event: e.Event) -> None:
        match event:
            case e.AttemptDispatched():
                self._dispatched(event)
            case e.AttemptStarted():
                self._open(event.step, "attempt").started_at = moment(event.at)
            case e.AttemptClaimed() | e.AttemptRepublished() | e.AttemptHandedBack():
                self._taken_over(event)
            case e.AttemptFailed() | e.AttemptTimedOut():
                self._unsuccessful(event)
            case e.StepCompleted():
                self._successful(event.at, event.step, Phase.ACTION, event.attempt, "completed")
            case e.StepCompensated():
                outcome: Outcome = "empty" if event.empty else "completed"
                where = (event.at, event.step, Phase.COMPENSATION, event.attempt)
                self._successful(*where, outcome)
            case e.LateSuccess():
                self._late(event)
            case e.EmptyDoubted():
                self._end(event.at, event.step, "doubted")
                self._pause(event.at, event.step, Phase.COMPENSATION, event.at)
            case e.AttemptHeartbeat():
                pass
            case _:
                self._by_the_way(event)
        if type(event) in SETTLING:
            self.settled_at = moment(event.at)
        elif isinstance(event, _UNSETTLING):
            self.settled_at = None
        self.marks.extend(marks_of(event))

    def _by_the_way(self, event: e.Event) -> None:
        """What is no attempt's."""
        match event:
            case e.SignalTaken():
                self._end(event.at, event.step, "completed")
            case e.StepApproved() | e.StepRejected():
                approved = isinstance(event, e.StepApproved)
                self._end(event.at, event.step, "approved" if approved else "rejected")
            case e.TaskHeld():
                held = BarView(kind="hold", began_at=moment(event.at), reason=event.reason)
                (self.bars[event.step] if event.step else self.holds).append(held)
            case e.TaskResumed():
                self._release(event.at, event.step)
                for name in event.steps:
                    self._pause(event.at, name, self._phase(name), event.at)
            case e.RecoveryStarted():
                self._release(event.at)
                for name in event.closing:
                    self._end(event.at, name, "cancelled")
            case e.StepSettled():
                self._release(event.at, event.step)
                self._end(event.at, event.step, "settled")
            case e.OutputRejected():
                for name in event.steps:
                    self._pause(event.at, name, Phase.ACTION, event.at)

    def _dispatched(self, event: e.AttemptDispatched) -> None:
        self._end(event.at, event.step, "over")
        step, phase = self._steps[event.step], event.phase
        if phase is Phase.COMPENSATION and event.step not in self.undone:
            self.undone.append(event.step)
        bar = BarView(
            kind="attempt",
            phase=cast(Any, phase.value),
            attempt=event.attempt,
            began_at=moment(event.at),
        )
        match step.kind:
            case "action":
                bar.agent = agent_of(step, phase)
            case "child":
                if phase is Phase.ACTION:
                    self._children[event.step] = event.attempt
                number = self._children.get(event.step, event.attempt)
                bar.child = child_id(self._task, event.step, number)
            case _:
                bar.kind = "wait"
                if step.kind == "sleep":
                    bar.due_at = moment(event.at + max(1, round(step.seconds * 1000)))
        self.bars[event.step].append(bar)

    def _taken_over(
        self, event: e.AttemptClaimed | e.AttemptRepublished | e.AttemptHandedBack
    ) -> None:
        bar, at = self._open(event.step, "attempt"), moment(event.at)
        match event:
            case e.AttemptClaimed():
                bar.worker, bar.started_at = event.worker, bar.started_at or at
                over = TakeOverView(at=at, kind="claimed", worker=event.worker, epoch=event.epoch)
            case e.AttemptRepublished():
                bar.worker = ""
                over = TakeOverView(at=at, kind="republished", epoch=event.epoch)
            case _:
                over = TakeOverView(at=at, kind="handed_back", worker=bar.worker)
        bar.take_overs.append(over)

    def _unsuccessful(self, event: e.AttemptFailed | e.AttemptTimedOut) -> None:
        if isinstance(event, e.AttemptFailed):
            self._end(event.at, event.step, "failed", event.error.type)
        else:
            self._end(event.at, event.step, "timed_out", f"Timeout.{event.timeout}")
        if event.retry_at:
            self._pause(event.at, event.step, event.phase, event.retry_at)

    def _successful(self, at: int, step: str, phase: Phase, attempt: int, outcome: Outcome) -> None:
        """The first success of any attempt wins: what goes on beside it is in vain."""
        succeeded = self._attempt(step, phase, attempt)
        if succeeded is not None and succeeded.ended_at is not None:
            _close(succeeded, at, outcome)
            succeeded.late, succeeded.error = True, ""
        elif succeeded is not None:
            _close(succeeded, at, outcome)
        for bar in self.bars[step]:
            if bar.ended_at is None and bar.kind != "hold":
                _close(bar, at, "superseded" if bar.kind == "attempt" else "over")

    def _late(self, event: e.LateSuccess) -> None:
        bar = self._attempt(event.step, Phase.ACTION, event.attempt)
        if bar is not None:
            _close(bar, event.at, "completed")
            bar.late, bar.error = True, ""
        if event.again:
            self._end(event.at, event.step, "superseded")
            self._pause(event.at, event.step, Phase.COMPENSATION, event.at)

    def _pause(self, at: int, step: str, phase: Phase, until: int) -> None:
        """Until the next attempt; one that follows at once leaves no trace."""
        self._end(at, step, "over")
        self.bars[step].append(
            BarView(
                kind="retry_wait",
                phase=cast(Any, phase.value),
                began_at=moment(at),
                due_at=moment(until),
            )
        )

    def _end(self, at: int, step: str, outcome: Outcome, error: str = "") -> None:
        """What went on of a step is over, but for a hold; a pause that took no time is left out."""
        bars = self.bars[step]
        if bars and bars[-1].kind == "retry_wait" and bars[-1].began_at == moment(at):
            del bars[-1]
        for bar in bars:
            if bar.ended_at is None and bar.kind != "hold":
                _close(bar, at, outcome)
                bar.error = error

    def _release(self, at: int, step: str = "") -> None:
        """What the task, or only this step, was held for has been looked at."""
        whose = [self.bars[step]] if step else [self.holds, *self.bars.values()]
        for bar in (bar for bars in whose for bar in bars):
            if bar.kind == "hold" and bar.ended_at is None:
                _close(bar, at, "over")

    def _open(self, step: str, kind: str) -> BarView:
        """The bar that goes on, which an event is about."""
        return next(bar for bar in reversed(self.bars[step]) if bar.kind == kind)

    def _attempt(self, step: str, phase: Phase, attempt: int) -> BarView | None:
        for bar in reversed(self.bars[step]):
            if bar.kind in ("attempt", "wait") and (bar.phase, bar.attempt) == (phase, attempt):
                return bar
        return None

    def _phase(self, step: str) -> Phase:
        """The phase that a step is in, by what was begun last of it."""
        bars = [bar for bar in self.bars[step] if bar.kind == "attempt"]
        return Phase(bars[-1].phase) if bars else Phase.ACTION


def _line(step: Step, task: Task, bars: list[BarView], handed_off_by: str) -> StepLine:
    state = task.steps[step.name]
    return StepLine(
        name=step.name,
        kind=step.kind,
        action=step.action,
        compensation=step.compensate,
        after=list(step.after),
        pivot=step.pivot,
        handed_off_by=handed_off_by,
        kept_from=UUID(task.beside.forked_from) if state.kept else None,
        status=state.status.value,
        bars=bars,
    )


def _chain(plan: Definition, state: Task, drawing: _Drawing) -> list[CompensationLink]:
    """What was undone, in that order; then what is still to be, if the task is being undone."""
    ordered = list(drawing.undone)
    if state.status is TaskStatus.COMPENSATING:
        ordered += [
            name
            for name in reversed(plan.steps)
            if name not in drawing.undone and may_need_compensation(plan, state, name)
        ]
    return [
        _link(place, plan.steps[name], state.steps[name], drawing.bars[name])
        for place, name in enumerate(ordered, start=1)
    ]


def _link(place: int, step: Step, state: StepState, bars: list[BarView]) -> CompensationLink:
    attempts = [bar for bar in bars if bar.kind == "attempt" and bar.phase == "compensation"]
    begun = state.phase is Phase.COMPENSATION
    ended = begun and state.status is not StepStatus.COMPENSATING
    child = f"child {step.saga}"
    return CompensationLink(
        order=place,
        step=step.name,
        compensation=step.compensate or child,
        undoes=step.action or child,
        status=cast(Any, state.status.value if begun else "waiting"),
        empty=state.empty,
        attempts=len(attempts),
        began_at=attempts[0].began_at if attempts else None,
        ended_at=attempts[-1].ended_at if ended and attempts else None,
    )


def _close(bar: BarView, at: int, outcome: Outcome) -> None:
    bar.ended_at, bar.outcome = moment(at), outcome
