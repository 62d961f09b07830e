"""The machine: what an input does to a task.

Laws, checked by exhaustive search in the tests:

1. Same input, same output; the fold of the history is the state; versions have no gap.
2. Ended states absorb, but for a child's success, which its parent may have undone. A repeated
   input changes nothing.
3. Every task that is neither ended nor parked has an attempt outstanding or a timer.
4. No attempt is dispatched twice without a failure, timeout or lost dispatch in between.
5. Compensation covers exactly the steps that have or may have an effect; each comes after those
   of its executed successors; none at or past the pivot.
6. An input of one phase is never taken for the other's.
7. What a fork keeps of another task it neither does again nor undoes.

This package knows no network, no database and no clock: times, ids and random numbers arrive in
values. A late or repeated input changes nothing; one that no history can explain raises
ImpossibleInput; a request that the state forbids comes back as `Transition.refusal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from headway.sagas import events as e
from headway.sagas import fork
from headway.sagas import inputs as i
from headway.sagas.actions import Action, Dispatch, StartChild, Stop, UndoChild, Withdraw
from headway.sagas.advance import advance
from headway.sagas.attempts import (
    asked_of_child,
    attempt_ended,
    claim_asked,
    dispatch_lost,
    guarded,
    handed_back,
    tick,
)
from headway.sagas.checks import UNCHECKED, Checks
from headway.sagas.definition import Definition
from headway.sagas.errors import ImpossibleInput
from headway.sagas.manual import retry_stuck, settle
from headway.sagas.moving import move
from headway.sagas.progress import Progress
from headway.sagas.recovery import is_past_return, recover
from headway.sagas.successes import succeeded
from headway.sagas.task import Phase, Task, TaskStatus, unborn
from headway.sagas.values import value
from headway.sagas.waiting import approve, child_ended, take_signal


@value
class Transition:
    """What came of an input: the new state, what to record, what to do once it is recorded."""

    task: Task
    events: tuple[e.Event, ...] = ()
    actions: tuple[Action, ...] = ()
    refusal: str = ""


def transition(
    definition: Definition, task: Task | None, happened: i.Input, checks: Checks = UNCHECKED
) -> Transition:
    """Decide what `happened` does to `task`; None is a task that does not exist yet.

    `definition` is the one that the task's plan gives (`planned`); so is the one for what comes of
    it, which may have more steps.
    """
    progress = Progress(definition, task or unborn(definition), checks)
    if isinstance(happened, i.Submit):
        if task is None:
            progress.record(e.TaskSubmitted(happened.at, happened.bounds, happened.child))
            if happened.fork is not None:
                fork.begin(progress, happened.at, happened.fork)
    elif task is None:
        raise ImpossibleInput("there is no such task")
    else:
        _apply(progress, happened)
    if progress.events or isinstance(happened, i.Tick):
        advance(progress, happened.at)
    events = tuple(progress.events)
    actions = tuple(_actions(progress, task, events))
    return Transition(progress.task, events, actions, progress.refusal)


def outstanding(definition: Definition, task: Task) -> tuple[Dispatch, ...]:
    """The commands that agents owe an answer to: what must be in the stream, or answered.

    One that was withdrawn when the task turned around is no longer among them.
    """
    return tuple(
        Dispatch(name, state.phase, state.attempt, state.epoch)
        for name, state in task.steps.items()
        if state.outstanding and not state.stop_by and definition.steps[name].kind == "action"
    )


def children(definition: Definition, task: Task) -> tuple[Dispatch, ...]:
    """The child tasks that this one waits for: that they end or, in the phase of compensation, that
    they are undone. Their attempt is the number of the child."""
    return tuple(
        asked_of_child(name, state)
        for name, state in task.steps.items()
        if state.outstanding and definition.steps[name].kind == "child"
    )


def _apply(progress: Progress, happened: i.Input) -> None:
    match happened:
        case i.Succeeded():
            _check_possible(progress, happened)
            succeeded(progress, happened)
        case i.Failed() | i.TimedOut():
            _check_possible(progress, happened)
            attempt_ended(progress, happened)
        case i.Started() | i.Heartbeat():
            _check_possible(progress, happened)
            _alive(progress, happened)
        case i.ClaimAsked():
            _check_possible(progress, happened)
            claim_asked(progress, happened)
        case i.HandedBack():
            _check_possible(progress, happened)
            handed_back(progress, happened)
        case i.DispatchLost():
            dispatch_lost(progress, happened)
        case i.ChildEnded():
            child_ended(progress, happened)
        case i.Guarded():
            guarded(progress, happened)
        case i.Tick():
            tick(progress, happened)
        case i.Cancel():
            _cancel(progress, happened)
        case i.Revoke():
            _revoke(progress, happened)
        case _:
            _by_hand(progress, happened)


ByHand = i.RetryStuck | i.Settle | i.Approval | i.SignalSent | i.Move | i.Submit


def _by_hand(progress: Progress, happened: ByHand) -> None:
    match happened:
        case i.RetryStuck():
            retry_stuck(progress, happened)
        case i.Settle():
            settle(progress, happened)
        case i.Approval():
            approve(progress, happened)
        case i.SignalSent():
            take_signal(progress, happened)
        case i.Move():
            move(progress, happened)
        case i.Submit():
            raise AssertionError("a submission is handled before")
        case _:
            assert_never(happened)


OfAttempt = (
    i.Succeeded | i.Failed | i.TimedOut | i.Started | i.Heartbeat | i.HandedBack | i.ClaimAsked
)


def _check_possible(progress: Progress, happened: OfAttempt) -> None:
    state = progress.task.steps.get(happened.step)
    if state is None:
        raise ImpossibleInput(f"there is no step {happened.step!r} in this task's saga")
    kind = progress.definition.steps[happened.step].kind
    if kind != "action":
        raise ImpossibleInput(
            f"step {happened.step!r} is of kind {kind}; no agent was asked for it"
        )
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
        state = progress.state(happened.step)
    if not isinstance(happened, i.Heartbeat):
        return
    news = happened.progress is not None and happened.progress != state.progress
    news = news or (happened.waiting and not state.waits)
    if news or (happened.at > state.heartbeat_at and not happened.waiting):
        progress.record(e.AttemptHeartbeat(*where, happened.progress, happened.waiting))


def _cancel(progress: Progress, happened: i.Cancel) -> None:
    task, pivot = progress.task, progress.definition.pivot
    if task.status is TaskStatus.COMPENSATING:
        return
    if task.ended or task.status is TaskStatus.FAILED_TO_COMPENSATE:
        progress.refuse(f"the task is {task.status}; it cannot be cancelled")
        return
    if is_past_return(progress):
        progress.refuse(
            f"step {pivot!r}, the point of no return, has been dispatched; "
            "from here the task can only go forward"
        )
        return
    recover(progress, happened.at, happened.reason or "cancelled", by=happened.by)


def _revoke(progress: Progress, happened: i.Revoke) -> None:
    """Undo a child, even one that succeeded, unless it is past its point of no return."""
    task, pivot = progress.task, progress.definition.pivot
    if task.status not in (TaskStatus.RUNNING, TaskStatus.PARKED, TaskStatus.SUCCEEDED):
        return
    if not task.beside.child:
        progress.refuse("the task is no other task's child; cancel it instead")
    elif is_past_return(progress):
        progress.refuse(f"the child is past its point of no return, step {pivot!r}")
    else:
        recover(progress, happened.at, happened.reason)


def _actions(
    progress: Progress, before: Task | None, events: Iterable[e.Event]
) -> Iterable[Action]:
    steps = progress.definition.steps
    for event in events:
        match event:
            case e.AttemptDispatched() | e.AttemptRepublished():
                if steps[event.step].kind == "action":
                    epoch = event.epoch if isinstance(event, e.AttemptRepublished) else 0
                    yield Dispatch(event.step, event.phase, event.attempt, epoch)
                elif steps[event.step].kind == "child":
                    asked = asked_of_child(event.step, progress.state(event.step))
                    acting = asked.phase is Phase.ACTION
                    yield (StartChild if acting else UndoChild)(asked.step, asked.attempt)
            case e.StepCompleted() | e.StepCompensated():
                if before is not None and before.steps[event.step].attempt > event.attempt:
                    yield Withdraw(event.step, before.steps[event.step].phase)
            case e.RecoveryStarted():
                yield from _stopped(progress, before, event)
            case e.AttemptTimedOut() if steps[event.step].kind == "action":
                yield Withdraw(event.step, event.phase)
                if event.phase is Phase.ACTION:
                    yield Stop(event.step, event.attempt)
            case _:
                pass


def _stopped(progress: Progress, before: Task | None, event: e.RecoveryStarted) -> Iterable[Action]:
    """What is asked of the running branches of a task that turned around."""
    for step in event.stopping:
        if progress.definition.steps[step].kind == "child":
            yield UndoChild(step, progress.state(step).actions)
            continue
        yield Withdraw(step, Phase.ACTION)
        if before is not None:
            yield Stop(step, before.steps[step].attempt)
