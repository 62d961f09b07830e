"""From a history to what happened in time: bars, marks and the chain of compensations. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast
from uuid import UUID

from headway.agents.timeline_views import (
    BarView,
    CompensationLink,
    StepLine,
    TakeOverView,
    TimelineView,
)
from headway.coordinator.timeline_drawing import Bar, Drawing, drawn
from headway.coordinator.timeline_marks import marks_of, moment, moment_or_none
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


def timeline(
    task: UUID, definition: Definition, history: Iterable[e.Event], now_ms: int
) -> TimelineView:
    """What happened to a task until now (ms since 1970). `definition` is the version that it runs
    now, with or without what its plan appended; `history` is whole, from its submission on."""
    events = tuple(history)
    state = replay(definition, events)
    plan = planned(definition, state.beside.plan)
    drawing = drawn(task, plan, events)
    appended = {each.step.name: each.by for each in state.beside.plan}
    return TimelineView(
        task=task,
        saga=plan.name,
        saga_version=plan.version,
        status=state.status.value,
        version=state.version,
        now=moment(now_ms),
        began_at=moment(events[0].at),
        settled_at=moment_or_none(drawing.settled_at),
        steps=[
            _line(step, state, drawing.bars[name], appended.get(name, ""))
            for name, step in plan.steps.items()
        ],
        holds=[_view(bar) for bar in drawing.holds],
        compensations=_chain(plan, state, drawing),
        marks=[mark for event in events for mark in marks_of(event)],
    )


def _line(step: Step, task: Task, bars: list[Bar], handed_off_by: str) -> StepLine:
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
        bars=[_view(bar) for bar in bars],
    )


def _chain(plan: Definition, state: Task, drawing: Drawing) -> list[CompensationLink]:
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


def _link(place: int, step: Step, state: StepState, bars: list[Bar]) -> CompensationLink:
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
        began_at=moment_or_none(attempts[0].began_at if attempts else None),
        ended_at=moment_or_none(attempts[-1].ended_at if ended and attempts else None),
    )


def _view(bar: Bar) -> BarView:
    return BarView(
        kind=bar.kind,
        phase=bar.phase,
        attempt=bar.attempt,
        agent=bar.agent,
        worker=bar.worker,
        child=bar.child,
        began_at=moment(bar.began_at),
        started_at=moment_or_none(bar.started_at),
        due_at=moment_or_none(bar.due_at),
        ended_at=moment_or_none(bar.ended_at),
        outcome=bar.outcome,
        error=bar.error,
        late=bar.late,
        reason=bar.reason,
        take_overs=[
            TakeOverView(at=moment(over.at), kind=over.kind, worker=over.worker, epoch=over.epoch)
            for over in bar.take_overs
        ],
    )
