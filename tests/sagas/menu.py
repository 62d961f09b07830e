"""What may happen next: every input that a state allows for, and some that it does not.

Times are NOW throughout. What has run out of time is shown by moving its clock back to where it
would have been set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from corpus import RESULT, Faults, Shape
from headway.sagas import Definition, Phase, Step, StepState, Task, planned
from headway.sagas import inputs as i
from headway.sagas.deadlines import CLOSE_GRACE_MS
from headway.sagas.task import Claim, Failure
from witness import Seen, Witness

NOW = 1_800_000_000_000
LATER = NOW + 1_000

_REJECTED = Failure("Rejected", "no")
_FAULT = Failure("Fault", "broken")

Happening = tuple[Task, i.Input]


def everything(shape: Shape, task: Task, seen: Witness) -> Iterator[Happening]:
    """Each input that may come, with the state that it finds."""
    faults, definition = shape.faults, planned(shape.definition, task.beside.plan)
    for name, known in seen.items():
        step = definition.steps[name]
        if step.kind == "action":
            for happened in _answers(shape, step, task.steps[name], known):
                yield task, happened
        else:
            for happened in _of_other_kind(shape, step, task, known):
                yield task, happened
        if faults.claims and known.open and step.kind == "action":
            for happened in _claims(name, task.steps[name], known):
                yield task, happened
        yield from _clocks(step, task, faults)
    yield run_out(definition, task), i.Tick(NOW)
    if faults.cancel:
        yield task, i.Cancel(NOW, "somebody", "changed my mind")
    if faults.people:
        for happened in _people(task):
            yield task, happened
        yield task, i.Move(NOW, "somebody", "", 1, 2, task.version)
    if faults.revoke:
        yield task, i.Revoke(NOW, "its parent is undone")
    bounds = task.beside.bounds
    if faults.deadline and bounds is not None:
        late = task.beside._replace(bounds=replace(bounds, deadline=NOW))
        yield replace(task, beside=late), i.Tick(NOW)


def _answers(shape: Shape, step: Step, state: StepState, known: Seen) -> Iterator[i.Input]:
    faults, name = shape.faults, step.name
    handoffs = [(), *((each,) for each in shape.handoffs.get(step.action, ()))]
    for attempt in range(1, known.actions + 1):
        for result in shape.may_give(name):
            for handoff in handoffs:
                where = (NOW, name, Phase.ACTION, attempt)
                yield i.Succeeded(*where, result, handoff=handoff)
    for attempt in range(1, known.compensations + 1):
        yield i.Succeeded(NOW, name, Phase.COMPENSATION, attempt)
        if faults.empties:
            yield i.Succeeded(NOW, name, Phase.COMPENSATION, attempt, empty=True)
    latest = known.compensations or known.actions
    phase = Phase.COMPENSATION if known.compensations else Phase.ACTION
    if latest and (phase is Phase.ACTION or faults.failing_compensations):
        yield from _failures(faults, name, phase, latest, state.epoch)
    if latest and faults.starts:
        yield i.Started(NOW, name, phase, latest, state.epoch)
        yield i.Heartbeat(NOW + 1, name, phase, latest, state.epoch)
    if latest and faults.losses:
        yield i.DispatchLost(NOW, name, phase, latest, state.epoch)
    if faults.stale:
        yield from _stale(name, state, known)


def _of_other_kind(shape: Shape, step: Step, task: Task, known: Seen) -> Iterator[i.Input]:
    """What is said to, or of, a step that no agent carries out."""
    if step.kind == "approval":
        yield i.Approval(NOW, step.name, True, "somebody", "fine")
        yield i.Approval(NOW, step.name, False, "somebody", "no")
    elif step.kind == "wait":
        told = len(task.beside.signal_ids)  # which id comes next makes no difference
        for number in range(min(told + 1, shape.faults.signals)):
            yield i.SignalSent(NOW, step.waits_for, f"s{number}", f"word {number}", "somebody")
    elif step.kind == "child":
        for attempt in range(1, known.actions + 1):
            where = (NOW, step.name, attempt)
            yield i.ChildEnded(*where, "succeeded", result=RESULT)
            yield i.ChildEnded(*where, "compensated", "it failed")
            yield i.ChildEnded(*where, "refused", "it cannot be")
        if shape.faults.losses and known.actions:
            state = task.steps[step.name]
            for phase in Phase:
                yield i.DispatchLost(NOW, step.name, phase, known.actions, state.epoch)


def _failures(
    faults: Faults, name: str, phase: Phase, attempt: int, epoch: int
) -> Iterator[i.Input]:
    where = (NOW, name, phase, attempt, epoch)
    if faults.holds:
        yield i.Failed(*where, _FAULT, retryable=False, no_effect=False, hold=True)
        yield i.Failed(*where, _FAULT, retryable=False, no_effect=True, hold=True)
        yield i.Guarded(NOW, name, "budget-spent", "nothing is left")
    if faults.faults:
        yield i.Failed(*where, _REJECTED, retryable=False, no_effect=True)
        yield i.Failed(*where, _FAULT, retryable=False, no_effect=False)
        if faults.attempts > 1:
            yield i.Failed(*where, _FAULT, retryable=True, no_effect=False)
            yield i.Failed(*where, _FAULT, retryable=True, no_effect=True)
            yield i.Failed(*where, _FAULT, retryable=True, no_effect=True, retry_after_ms=0)
    if faults.timeouts:
        yield i.TimedOut(*where)


def _stale(name: str, state: StepState, known: Seen) -> Iterator[i.Input]:
    """Failures of attempts and epochs that nobody waits for any more."""
    for phase, latest in ((Phase.ACTION, known.actions), (Phase.COMPENSATION, known.compensations)):
        if latest > 1 or (phase is Phase.ACTION and known.compensations):
            attempt = max(latest - 1, 1)
            yield i.Failed(NOW, name, phase, attempt, 0, _REJECTED, False, True)
            yield i.TimedOut(NOW, name, phase, attempt, 0)
        if latest and state.epoch > 0:
            epoch = state.epoch - 1
            yield i.Failed(NOW, name, phase, latest, epoch, _REJECTED, False, True)
            yield i.DispatchLost(NOW, name, phase, latest, epoch)


def _claims(name: str, state: StepState, known: Seen) -> Iterator[i.Input]:
    phase = state.phase
    attempt = known.compensations or known.actions
    for command_epoch in sorted({0, state.epoch}):
        for delivery in (1, 2, 3):
            claim = Claim(command_epoch, delivery, f"worker-{delivery}")
            yield i.ClaimAsked(NOW, name, phase, attempt, claim)
    for epoch in sorted({0, state.epoch}):
        yield i.HandedBack(NOW, name, phase, attempt, epoch)
    if attempt > 1:
        yield i.ClaimAsked(NOW, name, phase, attempt - 1, Claim(0, 2, "worker-2"))


def _people(task: Task) -> Iterator[i.Input]:
    yield i.RetryStuck(NOW + 1, "somebody", "mended")
    for name in task.steps:
        if task.parked:
            yield i.RetryStuck(NOW + 1, "somebody", "mended", name)
            yield i.Settle(NOW, name, "happened", "somebody", "saw it", RESULT)
            yield i.Settle(NOW, name, "did_not_happen", "somebody", "looked")


def _clocks(step: Step, task: Task, faults: Faults) -> Iterator[Happening]:
    name, state = step.name, task.steps[step.name]
    for changed in _run_out_clocks(step, state, faults.timeouts):
        yield _with(task, name, changed), i.Tick(NOW)
    closing = step.timeouts.schedule_to_close
    if closing is not None and state.outstanding and step.kind == "action":
        # too little is left for another attempt
        changed = state._replace(scheduled_at=NOW - _ms(closing) + 1)
        failed = i.Failed(NOW, name, state.phase, state.attempt, state.epoch, _FAULT, True, True)
        yield _with(task, name, changed), failed


def run_out(definition: Definition, task: Task) -> Task:
    """The state in which every clock of every step has run out at once."""
    for name, step in definition.steps.items():
        for changed in _run_out_clocks(step, task.steps[name], True):
            task = _with(task, name, changed)
            break
    return task


def _run_out_clocks(step: Step, state: StepState, timeouts: bool) -> Iterator[StepState]:
    limits = step.timeouts
    closing = limits.schedule_to_close
    if state.retry_at:
        yield state._replace(retry_at=NOW)
        if closing is not None:
            yield state._replace(retry_at=NOW - 1, scheduled_at=NOW - _ms(closing))
    if not state.outstanding:
        return
    if step.kind == "sleep":
        yield state._replace(dispatched_at=NOW - _ms(step.seconds))
    if state.stop_by:
        yield state._replace(stop_by=NOW)
    if not timeouts:
        return
    if closing is not None:
        yield state._replace(scheduled_at=NOW - _ms(closing))
    if state.started_at == 0:
        if limits.schedule_to_start is not None:
            yield state._replace(dispatched_at=NOW - _ms(limits.schedule_to_start))
        return
    if limits.start_to_close is not None:
        began = NOW - _ms(limits.start_to_close) - CLOSE_GRACE_MS
        yield state._replace(started_at=began)
    if limits.heartbeat is not None:
        yield state._replace(heartbeat_at=NOW - _ms(limits.heartbeat))


def nonsense(definition: Definition, task: Task, seen: Witness) -> Iterator[i.Input]:
    """What no history of this task can explain."""
    yield i.Succeeded(NOW, "nobody", Phase.ACTION, 1)
    yield i.DispatchLost(NOW, "nobody", Phase.ACTION, 1, 0)
    yield i.RetryStuck(NOW, "somebody", "", "nobody")
    yield i.Settle(NOW, "nobody", "happened", "somebody", "")
    yield i.Submit(NOW)
    yield i.Approval(NOW, "nobody", True, "somebody", "")
    yield i.ChildEnded(NOW, "nobody", 1, "succeeded")
    yield i.Move(NOW, "somebody", "", 1, 2, task.version - 1)
    for name, known in seen.items():
        kind = definition.steps[name].kind
        if kind != "action":
            yield from _nonsense_of_other_kind(name, kind, known)
            continue
        for phase, latest in (
            (Phase.ACTION, known.actions),
            (Phase.COMPENSATION, known.compensations),
        ):
            for attempt in (0, -1, latest + 1):
                yield i.Succeeded(NOW, name, phase, attempt)
            yield i.Failed(NOW, name, phase, latest + 1, 0, _FAULT, True, False)
            yield i.TimedOut(NOW, name, phase, latest + 1, 0)
            yield i.Started(NOW, name, phase, latest + 1, 0)
            yield i.ClaimAsked(NOW, name, phase, latest + 1, Claim(0, 2, "worker"))
            yield i.DispatchLost(NOW, name, phase, latest + 1, 0)


def _nonsense_of_other_kind(name: str, kind: str, known: Seen) -> Iterator[i.Input]:
    """Answers of agents that were not asked, and news of children that there are not."""
    yield i.SignalSent(NOW, "nothing", "s1")
    yield i.Guarded(NOW, "nobody", "budget-spent", "")
    attempt = known.actions + 1 if kind == "child" else 1
    yield i.ChildEnded(NOW, name, 0, "succeeded")
    yield i.ChildEnded(NOW, name, attempt, "compensated")
    for phase in Phase:
        yield i.Succeeded(NOW, name, phase, 1)
        yield i.Failed(NOW, name, phase, 1, 0, _FAULT, False, True)
        yield i.TimedOut(NOW, name, phase, 1, 0)
        yield i.Started(NOW, name, phase, 1, 0)
        yield i.ClaimAsked(NOW, name, phase, 1, Claim(0, 2, "worker"))


def _with(task: Task, name: str, state: StepState) -> Task:
    return replace(task, steps={**task.steps, name: state})


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
