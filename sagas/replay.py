"""The fold: a state and an event give the next state; a history gives the state it led to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, assert_never

from headway.sagas import events as e
from headway.sagas.circumstances import (
    DEADLINE,
    Appended,
    Circumstances,
    Hold,
    Signal,
)
from headway.sagas.definition import Definition
from headway.sagas.task import (
    UNTOUCHED,
    Claim,
    Failure,
    Phase,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
    unborn,
)

_AT_REST: dict[str, Any] = {
    "dispatched_at": 0,
    "started_at": 0,
    "heartbeat_at": 0,
    "retry_at": 0,
    "stop_by": 0,
    "waits": False,
    "handed_back": False,
}


def replay(definition: Definition, history: Iterable[e.Event]) -> Task:
    """The state that a whole history leads to. `definition` is the version that the task runs now,
    without what its plan appends."""
    task = unborn(definition)
    for event in history:
        task = fold(task, event)
    return task


def fold(task: Task, event: e.Event) -> Task:
    """The state after `event`; its version is one more."""
    match event:
        case e.AttemptDispatched():  # this and the next are by far the most
            return _step(task, event.step, _dispatched(task.steps[event.step], event))
        case e.StepCompleted():
            return _step(task, event.step, _completed(task.steps[event.step], event.result))
        case e.TaskSubmitted():
            return _submitted(task, event)
        case e.TaskSucceeded():
            return _task(task, TaskStatus.SUCCEEDED)
        case e.TaskCompensated():
            return _task(task, TaskStatus.COMPENSATED, task.cause)
        case e.TaskParked():
            return _task(task, TaskStatus.PARKED, event.reason)
        case e.TaskFailedToCompensate():
            return _task(task, TaskStatus.FAILED_TO_COMPENSATE, event.reason)
        case e.TaskResumed():
            return _resumed(task, event)
        case e.RecoveryStarted():
            return _recovering(task, event)
        case e.LateSuccess():
            return _late(task, event)
        case e.EmptyDoubted():
            return _doubted(task, event)
        case e.StepSettled():
            return _settled(task, event)
        case e.SignalReceived() | e.SignalTaken() | e.StepsAppended() | e.TaskHeld():
            return _beside(task, event)
        case e.TaskForked():
            return _beside(task, event)
        case e.OutputRejected():
            return _rejected(task, event)
        case e.TaskMoved():
            return replace(task, version=task.version + 1)
        case _:
            return _step(task, event.step, _fold_step(task.steps[event.step], event))


StepEvent = (
    e.AttemptStarted
    | e.AttemptHeartbeat
    | e.AttemptClaimed
    | e.AttemptHandedBack
    | e.AttemptRepublished
    | e.AttemptFailed
    | e.AttemptTimedOut
    | e.StepCompensated
    | e.StepSkipped
    | e.ConditionFailed
    | e.StepApproved
    | e.StepRejected
    | e.StepKept
)


def _fold_step(state: StepState, event: StepEvent) -> StepState:
    match event:
        case e.AttemptStarted():
            return state._replace(started_at=event.at, heartbeat_at=event.at)
        case e.AttemptHeartbeat():
            progress = state.progress if event.progress is None else event.progress
            waits = state.waits or event.waiting
            return state._replace(heartbeat_at=event.at, progress=progress, waits=waits)
        case e.AttemptClaimed():
            return _claimed(state, event)
        case e.AttemptHandedBack():
            return state._replace(handed_back=True)
        case e.AttemptRepublished():
            return state._replace(
                epoch=event.epoch,
                dispatched_at=event.at,
                started_at=0,
                heartbeat_at=0,
                waits=False,
                uncertain=state.uncertain or event.phase is Phase.ACTION,
                claim=Claim(event.epoch, 0, "") if event.fenced else state.claim,
            )
        case e.AttemptFailed():
            uncertain = state.uncertain
            if event.phase is Phase.ACTION:
                uncertain = (uncertain or not event.no_effect) and _may_matter(event.status)
            return _unanswered(state, event, event.error, uncertain)
        case e.AttemptTimedOut():
            error = Failure(f"Timeout.{event.timeout}", f"no answer within {event.timeout}")
            uncertain = state.uncertain or event.phase is Phase.ACTION
            return _unanswered(state, event, error, uncertain and _may_matter(event.status))
        case e.StepCompensated():
            return state._replace(
                status=StepStatus.COMPENSATED, error=None, empty=event.empty, **_AT_REST
            )
        case _:
            return _fold_other_kind(state, event)


OtherKind = e.StepSkipped | e.ConditionFailed | e.StepApproved | e.StepRejected | e.StepKept


def _fold_other_kind(state: StepState, event: OtherKind) -> StepState:
    match event:
        case e.StepSkipped():
            return state._replace(status=StepStatus.SKIPPED)
        case e.ConditionFailed():
            return state._replace(
                status=StepStatus.FAILED, error=event.error, scheduled_at=event.at
            )
        case e.StepApproved():
            return _completed(state, {"approved": True, "by": event.by, "reason": event.reason})
        case e.StepRejected():
            error = Failure("Rejected", event.reason or f"rejected by {event.by or 'default'}")
            return state._replace(status=StepStatus.FAILED, error=error, **_AT_REST)
        case e.StepKept():
            return _completed(state, event.result)._replace(kept=True)
        case _:
            assert_never(event)


def _completed(state: StepState, result: Any) -> StepState:
    completed = StepState(
        StepStatus.COMPLETED, state.attempt, state.actions, state.scheduled_at, 0, True, result
    )
    if state.discounted:
        return completed._replace(discounted=state.discounted)
    return completed


def _claimed(state: StepState, event: e.AttemptClaimed) -> StepState:
    """A delivery after the first tells of an earlier holder, who may have got anywhere."""
    taken_over = event.phase is Phase.ACTION and event.delivery > 1
    return state._replace(
        epoch=event.epoch,
        started_at=event.at,
        heartbeat_at=event.at,
        waits=False,
        uncertain=state.uncertain or taken_over,
        claims=state.claims if state.handed_back else state.claims + 1,
        handed_back=False,
        claim=Claim(event.command_epoch, event.delivery, event.worker),
    )


def _may_matter(status: StepStatus) -> bool:
    """A step that ends as `failed` is known to have left nothing, whatever an attempt said."""
    return status is not StepStatus.FAILED


def _dispatched(state: StepState, event: e.AttemptDispatched) -> StepState:
    acting = event.phase is Phase.ACTION
    if state is UNTOUCHED and acting:
        return StepState(StepStatus.SCHEDULED, event.attempt, event.attempt, event.at, event.at)
    first = state.scheduled_at == 0 or event.attempt == 1
    return StepState(
        StepStatus.SCHEDULED if acting else StepStatus.COMPENSATING,
        attempt=event.attempt,
        dispatched_at=event.at,
        scheduled_at=event.at if first else state.scheduled_at,
        spent=0 if event.attempt == 1 else state.spent,
        actions=event.attempt if acting else state.actions,
        uncertain=state.uncertain,
        known=state.known,
        doubted=state.doubted,
        discounted=state.discounted,
        error=state.error,
        result=state.result,
        progress=state.progress if acting else None,
    )


def _unanswered(
    state: StepState,
    event: e.AttemptFailed | e.AttemptTimedOut,
    error: Failure,
    uncertain: bool,
) -> StepState:
    at_rest = {**_AT_REST, "retry_at": event.retry_at}
    return state._replace(status=event.status, error=error, uncertain=uncertain, **at_rest)


def _resumed(task: Task, event: e.TaskResumed) -> Task:
    acting = task.status is TaskStatus.PARKED
    steps = dict(task.steps)
    for name in event.steps:
        state = steps[name]
        steps[name] = state._replace(
            status=StepStatus.SCHEDULED if acting else StepStatus.COMPENSATING,
            spent=state.attempt,
            scheduled_at=event.at,
            retry_at=event.at,
        )
    return replace(
        task,
        status=TaskStatus.RUNNING if acting else TaskStatus.COMPENSATING,
        version=task.version + 1,
        steps=steps,
        reason=task.cause,
        beside=_let_go(task.beside, event.step) if task.beside.holds else task.beside,
    )


def _let_go(beside: Circumstances, step: str) -> Circumstances:
    """A person ends the holds for this step, or all of them; the loop breaker counts anew."""
    left = tuple(hold for hold in beside.holds if step and hold.step != step)
    accepted = beside.accepted or any(hold.is_of_output for hold in beside.holds)
    return beside._replace(holds=left, trail=(), accepted=accepted)


def _recovering(task: Task, event: e.RecoveryStarted) -> Task:
    steps = dict(task.steps)
    for name, state in steps.items():
        if state.status is StepStatus.WAITING:
            steps[name] = state._replace(status=StepStatus.SKIPPED)
    for name, stop_by in event.stopping.items():
        steps[name] = steps[name]._replace(stop_by=stop_by)
    for name, status in event.closing.items():
        uncertain = steps[name].uncertain and _may_matter(status)
        steps[name] = steps[name]._replace(status=status, uncertain=uncertain, **_AT_REST)
    return Task(
        TaskStatus.COMPENSATING,
        task.version + 1,
        steps,
        event.reason,
        task.incident,
        event.reason,
        task.beside._replace(holds=()) if task.beside.holds else task.beside,
    )


def _late(task: Task, event: e.LateSuccess) -> Task:
    state = task.steps[event.step]._replace(known=True, result=event.result)
    if state.phase is Phase.COMPENSATION:
        state = state._replace(doubted=state.attempt)
    if event.again:
        state = _once_more(state, event.at)
    after = _step(task, event.step, state)
    if not event.incident:
        return after
    before = "its compensation had found nothing to undo"
    if state.phase is Phase.ACTION:
        before = "it had been reported to have left nothing"
    return replace(after, incident=f"step {event.step} took effect after {before}")


def _doubted(task: Task, event: e.EmptyDoubted) -> Task:
    after = _step(task, event.step, _once_more(task.steps[event.step], event.at))
    incident = f"step {event.step} took effect though its compensation found nothing to undo"
    return replace(after, incident=incident)


def _once_more(state: StepState, at: int) -> StepState:
    """A further series of compensations, due at once."""
    at_rest = {**_AT_REST, "retry_at": at}
    return state._replace(
        status=StepStatus.COMPENSATING, empty=False, spent=state.attempt, **at_rest
    )


def _settled(task: Task, event: e.StepSettled) -> Task:
    completed = event.status is StepStatus.COMPLETED
    state = task.steps[event.step]._replace(
        status=event.status,
        uncertain=False,
        empty=event.empty,
        known=completed or task.steps[event.step].known,
        result=event.result if completed else task.steps[event.step].result,
        **_AT_REST,
    )
    resumed = TaskStatus.RUNNING if task.status is TaskStatus.PARKED else TaskStatus.COMPENSATING
    beside = task.beside
    if beside.holds:
        left = tuple(hold for hold in beside.holds if hold.step != event.step)
        beside = beside._replace(holds=left)
    return replace(_step(task, event.step, state), status=resumed, beside=beside)


def _submitted(task: Task, event: e.TaskSubmitted) -> Task:
    after = _task(task)
    if event.bounds is None and not event.child:
        return after
    return replace(after, beside=Circumstances(bounds=event.bounds, child=event.child))


Beside = e.SignalReceived | e.SignalTaken | e.StepsAppended | e.TaskHeld | e.TaskForked


def _beside(task: Task, event: Beside) -> Task:
    beside, steps, reason = task.beside, task.steps, task.reason
    match event:
        case e.SignalReceived():
            signal = Signal(event.name, event.id, event.payload)
            ids = (*beside.signal_ids, event.id)
            beside = beside._replace(signals=(*beside.signals, signal), signal_ids=ids)
        case e.SignalTaken():
            [taken] = [signal for signal in beside.signals if signal.id == event.id]
            left = tuple(signal for signal in beside.signals if signal is not taken)
            beside = beside._replace(signals=left)
            steps = {**steps, event.step: _completed(steps[event.step], taken.payload)}
        case e.StepsAppended():
            appended = tuple(Appended(event.by, step) for step in event.steps)
            beside = beside._replace(plan=beside.plan + appended, trail=event.trail)
            steps = {**steps, **dict.fromkeys((step.name for step in event.steps), UNTOUCHED)}
        case e.TaskHeld():
            hold = Hold(event.kind, event.reason, event.step, event.at)
            overdue = beside.overdue or (event.kind == DEADLINE and not event.step)
            beside = beside._replace(holds=(*beside.holds, hold), overdue=overdue)
            reason = beside.why_held
        case e.TaskForked():
            beside = beside._replace(forked_from=event.origin)
        case _:
            assert_never(event)
    return replace(task, version=task.version + 1, steps=steps, reason=reason, beside=beside)


def _rejected(task: Task, event: e.OutputRejected) -> Task:
    """The last steps are done again, by further attempts, and their successes until now count no
    more."""
    steps = dict(task.steps)
    for name in event.steps:
        state = steps[name]
        steps[name] = state._replace(
            status=StepStatus.SCHEDULED,
            retry_at=event.at,
            scheduled_at=event.at,
            spent=state.attempt,
            discounted=state.attempt,
            uncertain=True,
            known=False,
            result=None,
        )
    beside = task.beside._replace(
        rejection=event.reason, rejections=task.beside.rejections + 1, accepted=False
    )
    return replace(task, version=task.version + 1, steps=steps, beside=beside)


def _step(task: Task, name: str, state: StepState) -> Task:
    return Task(
        task.status,
        task.version + 1,
        {**task.steps, name: state},
        task.reason,
        task.incident,
        task.cause,
        task.beside,
    )


def _task(task: Task, status: TaskStatus | None = None, reason: str = "") -> Task:
    rest = task.incident, task.cause, task.beside
    return Task(status or task.status, task.version + 1, task.steps, reason, *rest)
