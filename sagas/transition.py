"""The machine: what an input does to a task.

Laws, checked by exhaustive search in the tests:

1. Same input, same output; the fold of the history is the state; versions have no gap.
2. Ended states absorb. A repeated input changes nothing.
3. Every task that is neither ended nor parked has an attempt outstanding or a timer.
4. No attempt is dispatched twice without a failure, timeout or lost dispatch in between.
5. Compensation covers exactly the steps that have or may have an effect; each comes after those
   of its executed successors; none at or past the pivot.
6. An input of one phase is never taken for the other's.

This package knows no network, no database and no clock: times, ids and random numbers arrive in
values. A late or repeated input changes nothing; one that no history can explain raises
ImpossibleInput; a request that the state forbids comes back as `Transition.refusal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.actions import Action, Dispatch, Stop, Withdraw
from headway.sagas.advance import advance, recover
from headway.sagas.attempts import attempt_ended, claim_asked, dispatch_lost, tick
from headway.sagas.definition import Definition
from headway.sagas.errors import ImpossibleInput
from headway.sagas.manual import retry_stuck, settle
from headway.sagas.progress import Progress
from headway.sagas.successes import succeeded
from headway.sagas.task import Phase, Task, TaskStatus, unborn


@dataclass(frozen=True, slots=True)
class Transition:
    """What came of an input: the new state, what to record, what to do once it is recorded."""

    task: Task
    events: tuple[e.Event, ...] = ()
    actions: tuple[Action, ...] = ()
    refusal: str = ""


def transition(definition: Definition, task: Task | None, happened: i.Input) -> Transition:
    """Decide what `happened` does to `task`; None is a task that does not exist yet."""
    progress = Progress(definition, task or unborn(definition))
    if isinstance(happened, i.Submit):
        if task is None:
            progress.record(e.TaskSubmitted(happened.at))
    elif task is None:
        raise ImpossibleInput("there is no such task")
    else:
        _apply(progress, happened)
    if progress.events or isinstance(happened, i.Tick):
        advance(progress, happened.at)
    events = tuple(progress.events)
    return Transition(progress.task, events, tuple(_actions(task, events)), progress.refusal)


def outstanding(task: Task) -> tuple[Dispatch, ...]:
    """The commands that agents owe an answer to: what must be in the stream, or answered.

    One that was withdrawn when the task turned around is no longer among them.
    """
    return tuple(
        Dispatch(name, state.phase, state.attempt, state.epoch)
        for name, state in task.steps.items()
        if state.outstanding and not state.stop_by
    )


def _apply(progress: Progress, happened: i.Input) -> None:
    match happened:
        case i.Succeeded():
            _check_possible(progress.task, happened)
            succeeded(progress, happened)
        case i.Failed() | i.TimedOut():
            _check_possible(progress.task, happened)
            attempt_ended(progress, happened)
        case i.Started() | i.Heartbeat():
            _check_possible(progress.task, happened)
            _alive(progress, happened)
        case i.ClaimAsked():
            _check_possible(progress.task, happened)
            claim_asked(progress, happened)
        case i.DispatchLost():
            dispatch_lost(progress, happened)
        case i.Tick():
            tick(progress, happened)
        case i.Cancel():
            _cancel(progress, happened)
        case i.RetryStuck():
            retry_stuck(progress, happened)
        case i.Settle():
            settle(progress, happened)
        case i.Submit():
            raise AssertionError("a submission is handled before")
        case _:
            assert_never(happened)


OfAttempt = i.Succeeded | i.Failed | i.TimedOut | i.Started | i.Heartbeat | i.ClaimAsked


def _check_possible(task: Task, happened: OfAttempt) -> None:
    state = task.steps.get(happened.step)
    if state is None:
        raise ImpossibleInput(f"there is no step {happened.step!r} in this task's saga")
    if happened.phase is Phase.ACTION:
        dispatched = state.actions
    else:
        dispatched = state.attempt if state.phase is Phase.COMPENSATION else 0
    if not 1 <= happened.attempt <= dispatched:
        raise ImpossibleInput(
            f"attempt {happened.attempt} of step {happened.step!r} ({happened.phase}) was never "
            f"dispatched; the last one was {dispatched}"
        )


def _alive(progress: Progress, happened: i.Started | i.Heartbeat) -> None:
    state = progress.task.steps[happened.step]
    if not progress.is_current(happened) or happened.epoch != state.epoch:
        return
    where = (happened.at, happened.step, happened.phase, happened.attempt)
    if state.started_at == 0:
        progress.record(e.AttemptStarted(*where))
    elif isinstance(happened, i.Heartbeat) and happened.at > state.heartbeat_at:
        progress.record(e.AttemptHeartbeat(*where))


def _cancel(progress: Progress, happened: i.Cancel) -> None:
    task, pivot = progress.task, progress.definition.pivot
    if task.status is TaskStatus.COMPENSATING:
        return
    if task.ended or task.status is TaskStatus.FAILED_TO_COMPENSATE:
        progress.refuse(f"the task is {task.status}; it cannot be cancelled")
        return
    if pivot is not None and task.steps[pivot].actions:
        progress.refuse(
            f"step {pivot!r}, the point of no return, has been dispatched; "
            "from here the task can only go forward"
        )
        return
    recover(progress, happened.at, happened.reason or "cancelled", by=happened.by)


def _actions(before: Task | None, events: Iterable[e.Event]) -> Iterable[Action]:
    for event in events:
        match event:
            case e.AttemptDispatched():
                yield Dispatch(event.step, event.phase, event.attempt, 0)
            case e.AttemptRepublished():
                yield Dispatch(event.step, event.phase, event.attempt, event.epoch)
            case e.RecoveryStarted():
                for step in event.stopping:
                    yield Withdraw(step, Phase.ACTION)
                    if before is not None:
                        yield Stop(step, before.steps[step].attempt)
            case e.AttemptTimedOut():
                yield Withdraw(event.step, event.phase)
                if event.phase is Phase.ACTION:
                    yield Stop(event.step, event.attempt)
            case e.StepCompleted() | e.StepCompensated():
                if before is not None and before.steps[event.step].attempt > event.attempt:
                    yield Withdraw(event.step, before.steps[event.step].phase)
            case _:
                pass
