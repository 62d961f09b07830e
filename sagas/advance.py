"""What follows from a state by itself: dispatch what is ready, recover, park, end.

Backward recovery first lets running branches end (or gives them up), then undoes every step that
has or may have an effect, in reverse order of the dependency edges, independent branches side
by side. Past the pivot there is no way back: what fails there parks the task.
"""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas.checks import results_of
from headway.sagas.definition import Definition
from headway.sagas.finish import finish
from headway.sagas.progress import Progress
from headway.sagas.recovery import recover, stuck
from headway.sagas.step import Step
from headway.sagas.task import (
    ACTIVE,
    UNSUCCESSFUL,
    Failure,
    Phase,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
    may_need_compensation,
)
from headway.sagas.waiting import serve_signal

_AT_WORK = ("action", "child")  # kinds that somebody else carries out


def advance(progress: Progress, at: int) -> None:
    """Record everything that the state calls for now."""
    while progress.task.status in (TaskStatus.RUNNING, TaskStatus.PARKED):
        failed = _failed_before_pivot(progress.definition, progress.task)
        if failed is not None:
            recover(progress, at, _why(progress.task, failed), failed=failed)
        elif progress.task.parked or _forward(progress, at):
            break
    if progress.task.status is TaskStatus.COMPENSATING:
        _backward(progress, at)


def _failed_before_pivot(definition: Definition, task: Task) -> str | None:
    """A step whose failure turns the task around. A pivot does so only if it left nothing."""
    for name, state in task.steps.items():
        if state.status not in UNSUCCESSFUL or definition.is_after_pivot(name):
            continue
        if name != definition.pivot or state.status is StepStatus.FAILED:
            return name
    return None


def _why(task: Task, step: str) -> str:
    error = task.steps[step].error
    if error is None:
        return f"step {step!r} ended without effect"
    return f"step {step!r}: {error.type}: {error.message}"


def _forward(progress: Progress, at: int) -> bool:
    """Begin what is ready, or end what is done. False: something else came of it, look again.

    Agents and children are asked last: what is sent cannot be made unsent when a condition fails.
    """
    held, active = bool(progress.task.beside.holds), False
    to_send: list[Step] = []
    for name, step in progress.definition.steps.items():
        state = progress.task.steps[name]
        status = state.status
        if status is StepStatus.SCHEDULED:
            if held or not 0 < state.retry_at <= at:
                active = active or not held or (state.outstanding and step.kind in _AT_WORK)
                continue
        elif status is not StepStatus.WAITING or held or not _is_ready(step, progress.task.steps):
            continue
        elif step.when and not _is_wanted(progress, step, at):
            if progress.state(name).status is StepStatus.FAILED:
                return False
            continue
        if step.kind in _AT_WORK:
            to_send.append(step)
        else:
            _begin(progress, step, at)
            active = active or progress.state(name).status is StepStatus.SCHEDULED
    for step in to_send:
        _begin(progress, step, at)
    return active or bool(to_send) or _came_to_rest(progress, at)


def _is_wanted(progress: Progress, step: Step, at: int) -> bool:
    """Whether a step's condition holds; if not, it is skipped or, if nobody can tell, failed.

    It sees what is there for certain: the results of the steps that it comes after.
    """
    before = progress.definition.ancestors[step.name]
    results = {name: it for name, it in results_of(progress.task).items() if name in before}
    verdict = progress.checks.when(step.when, results)
    if isinstance(verdict, Failure):
        progress.record(e.ConditionFailed(at, step.name, verdict))
        return False
    if not verdict:
        progress.record(e.StepSkipped(at, step.name))
    return verdict


def _begin(progress: Progress, step: Step, at: int) -> None:
    """Dispatch the next attempt of a step. A child that may have an effect is the same again."""
    state = progress.state(step.name)
    again = step.kind == "child" and state.uncertain
    attempt = state.attempt if again else state.attempt + 1
    progress.record(e.AttemptDispatched(at, step.name, Phase.ACTION, attempt))
    if step.kind == "wait":
        serve_signal(progress, step, at)


def _came_to_rest(progress: Progress, at: int) -> bool:
    """Nothing is going on: park or succeed. False: it goes on after all."""
    reasons = [hold.reason for hold in progress.task.beside.holds]
    blocked = stuck(progress.task)
    if blocked:
        why = "; ".join(_why(progress.task, name) for name in blocked)
        reasons.append(f"past the point of no return: {why}")
    if not reasons:
        return finish(progress, at)
    progress.record(e.TaskParked(at, "; ".join(reasons)))
    return True


def _is_ready(step: Step, known: dict[str, StepState]) -> bool:
    """Whether a step waits for no other."""
    for before in step.after:
        status = known[before].status
        if status is not StepStatus.COMPLETED and status is not StepStatus.SKIPPED:
            return False
    return True


def _backward(progress: Progress, at: int) -> None:
    if any(state.status is StepStatus.SCHEDULED for state in progress.task.steps.values()):
        return  # running branches end first
    for name in reversed(progress.definition.steps):
        state = progress.state(name)
        if state.status is StepStatus.COMPENSATING:
            if 0 < state.retry_at <= at:
                attempt = state.attempt + 1
                progress.record(e.AttemptDispatched(at, name, Phase.COMPENSATION, attempt))
        elif _is_next_to_compensate(progress.definition, progress.task, name):
            progress.record(e.AttemptDispatched(at, name, Phase.COMPENSATION, 1))
    task = progress.task
    if any(state.status in ACTIVE for state in task.steps.values()):
        return
    blocked = stuck(task)
    if blocked:
        why = "; ".join(_why(task, name) for name in blocked)
        progress.record(e.TaskFailedToCompensate(at, f"{task.cause}; compensation failed: {why}"))
    else:
        progress.record(e.TaskCompensated(at))


def _is_next_to_compensate(definition: Definition, task: Task, step: str) -> bool:
    """Whether all that was built on this step is undone, so that its turn has come."""
    return may_need_compensation(definition, task, step) and not any(
        may_need_compensation(definition, task, later)
        or task.steps[later].status in (StepStatus.COMPENSATING, StepStatus.FAILED_TO_COMPENSATE)
        for later in definition.descendants[step]
    )
