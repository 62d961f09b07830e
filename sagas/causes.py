"""What may have led to the events that come next in a history: every possible input. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.circumstances import Fork
from headway.sagas.definition import Definition
from headway.sagas.handoff import HANDOFF_REFUSED
from headway.sagas.step import Step
from headway.sagas.task import UNTOUCHED, Claim, Phase, StepState, Task

_ANOTHER_DELIVERY = Claim(1_000_000, 1, "another")  # later than any
_SUCCESSES = (e.StepCompleted, e.LateSuccess, e.StepCompensated, e.EmptyDoubted)


def causes(definition: Definition, task: Task, left: Sequence[e.Event]) -> Iterator[i.Input]:
    """Inputs that could lead to the events `left`, or to the first few of them, in this state."""
    first = left[0]
    match first:
        case e.TaskSubmitted():
            yield i.Submit(first.at, first.bounds, first.child, _fork(left))
        case e.TaskMoved():
            where = (first.origin, first.target, task.version)
            yield i.Move(first.at, first.by, first.reason, *where)
        case e.StepCompleted() | e.LateSuccess() | e.StepCompensated() | e.EmptyDoubted():
            yield from _successes(definition, task, left)
        case e.AttemptFailed():
            yield from _failures(definition, task, first, left[1:2])
        case e.TaskResumed():
            yield from _resumptions(definition, task, left)
        case e.AttemptStarted() | e.AttemptHeartbeat() | e.AttemptHandedBack():
            yield from _signs_of_life(task, first)
        case e.AttemptClaimed() | e.AttemptRepublished() | e.AttemptTimedOut():
            yield from _deliveries(task, first)
        case _:
            yield from _words(task, first)
    yield i.Tick(first.at)


def _fork(left: Sequence[e.Event]) -> Fork | None:
    if len(left) < 2 or not isinstance(left[1], e.TaskForked):
        return None
    kept = {event.step: event.result for event in left[2:] if isinstance(event, e.StepKept)}
    return Fork(left[1].origin, left[1].step, kept, left[1].by, left[1].reason)


def _successes(definition: Definition, task: Task, left: Sequence[e.Event]) -> Iterator[i.Input]:
    first = left[0]
    assert isinstance(first, _SUCCESSES)
    where = (first.at, first.step)
    if isinstance(first, e.StepCompleted | e.LateSuccess):
        if _is_child(definition, first.step):
            yield i.ChildEnded(*where, first.attempt, "succeeded", result=first.result)
        answer = i.Succeeded(*where, Phase.ACTION, first.attempt, first.result)
        yield replace(answer, handoff=_handed_off(left))
        return
    empty = isinstance(first, e.EmptyDoubted) or first.empty
    if _is_child(definition, first.step):
        yield i.ChildEnded(*where, task.steps[first.step].actions, "compensated")
    yield i.Succeeded(*where, Phase.COMPENSATION, first.attempt, empty=empty)


def _handed_off(left: Sequence[e.Event]) -> tuple[Step, ...]:
    """What a step handed off to. Of what was refused nothing is known: anything that must be."""
    following = left[1] if len(left) > 1 else None
    if isinstance(following, e.StepsAppended):
        return following.steps
    if isinstance(following, e.TaskHeld) and following.kind == HANDOFF_REFUSED:
        return (Step(following.step, "nobody.nothing"),)
    return ()


def _failures(
    definition: Definition, task: Task, failed: e.AttemptFailed, then: Sequence[e.Event]
) -> Iterator[i.Input]:
    where, error = (failed.at, failed.step), failed.error
    state = task.steps.get(failed.step, UNTOUCHED)
    if _is_child(definition, failed.step):
        outcomes: tuple[Literal["compensated", "refused"], ...] = ("compensated", "refused")
        for outcome in outcomes:
            yield i.ChildEnded(*where, state.actions, outcome, error.message)
        return
    held = any(isinstance(event, e.TaskHeld) for event in then)
    after = failed.retry_at - failed.at if failed.retry_at else None
    for retryable, hold in ((True, False), (False, False), *(((False, True),) if held else ())):
        for after_ms in dict.fromkeys((None, after)):
            yield i.Failed(
                *where,
                failed.phase,
                failed.attempt,
                state.epoch,
                error,
                retryable,
                failed.no_effect,
                after_ms,
                hold=hold,
            )


def _signs_of_life(
    task: Task, sign: e.AttemptStarted | e.AttemptHeartbeat | e.AttemptHandedBack
) -> Iterator[i.Input]:
    epoch = task.steps.get(sign.step, UNTOUCHED).epoch
    where = (sign.at, sign.step, sign.phase, sign.attempt, epoch)
    match sign:
        case e.AttemptStarted():
            yield i.Started(*where)
        case e.AttemptHeartbeat():
            yield i.Heartbeat(*where, sign.progress, sign.waiting)
        case e.AttemptHandedBack():
            yield i.HandedBack(*where)


def _deliveries(
    task: Task, event: e.AttemptClaimed | e.AttemptRepublished | e.AttemptTimedOut
) -> Iterator[i.Input]:
    state = task.steps.get(event.step, UNTOUCHED)
    where = (event.at, event.step, event.phase, event.attempt)
    match event:
        case e.AttemptClaimed():
            claim = Claim(event.command_epoch, event.delivery, event.worker)
            yield i.ClaimAsked(*where, claim)
        case e.AttemptRepublished():
            yield from _losses(event, state, fenced=event.fenced)
        case e.AttemptTimedOut():
            yield i.TimedOut(*where, state.epoch)
            yield i.ClaimAsked(*where, _ANOTHER_DELIVERY)
            yield from _losses(event, state)


def _losses(
    event: e.AttemptRepublished | e.AttemptTimedOut, state: StepState, *, fenced: bool = False
) -> Iterator[i.Input]:
    """Of an agent's command, or of a child, which may have been asked to be undone."""
    yield i.DispatchLost(event.at, event.step, event.phase, event.attempt, state.epoch, fenced)
    for phase in Phase:
        yield i.DispatchLost(event.at, event.step, phase, state.actions, state.epoch, fenced)


def _words(task: Task, event: e.Event) -> Iterator[i.Input]:
    """What people and other systems say, and what guards do."""
    match event:
        case e.RecoveryStarted():
            yield i.Cancel(event.at, event.by, event.reason)
            yield i.Revoke(event.at, event.reason)
        case e.StepApproved() | e.StepRejected():
            approved = isinstance(event, e.StepApproved)
            yield i.Approval(event.at, event.step, approved, event.by, event.reason)
        case e.SignalReceived():
            yield i.SignalSent(event.at, event.name, event.id, event.payload, event.by)
        case e.StepSettled():
            said = (event.by, event.reason, event.result)
            yield i.Settle(event.at, event.step, "happened", *said)
            yield i.Settle(event.at, event.step, "did_not_happen", *said)
        case e.TaskHeld():
            yield i.Guarded(event.at, event.step, event.kind, event.reason)
            state = task.steps.get(event.step, UNTOUCHED)
            where = (event.at, event.step, state.phase, state.attempt)
            yield i.ClaimAsked(*where, _ANOTHER_DELIVERY)
        case _:
            pass


def _resumptions(definition: Definition, task: Task, left: Sequence[e.Event]) -> Iterator[i.Input]:
    resumed, then = left[0], left[1] if len(left) > 1 else None
    assert isinstance(resumed, e.TaskResumed)
    named = {resumed.step, *resumed.steps} - {""}
    if isinstance(then, e.OutputRejected):
        named |= {*then.steps}
    for step in (None, *sorted(named)):
        yield i.RetryStuck(resumed.at, resumed.by, resumed.reason, step)
    if isinstance(then, e.StepCompleted | e.StepCompensated):
        yield from _successes(definition, task, left[1:])


def _is_child(definition: Definition, step: str) -> bool:
    return step in definition.steps and definition.steps[step].kind == "child"
