"""What follows from a state by itself: dispatch what is ready, recover, park, end.

Backward recovery first lets running branches end (or gives them up), then undoes every step that
has or may have an effect, in reverse order of the dependency edges, independent branches side
by side. Past the pivot there is no way back: what fails there parks the task.
"""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas.deadlines import stop_by
from headway.sagas.definition import Definition
from headway.sagas.progress import Progress
from headway.sagas.task import (
    ACTIVE,
    UNSUCCESSFUL,
    Phase,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
    may_need_compensation,
)


def advance(progress: Progress, at: int) -> None:
    """Record everything that the state calls for now."""
    if progress.task.status is TaskStatus.RUNNING:
        failed = _failed_before_pivot(progress.definition, progress.task)
        if failed is None:
            _forward(progress, at)
        else:
            recover(progress, at, _why(progress.task, failed), step=failed)
    if progress.task.status is TaskStatus.COMPENSATING:
        _backward(progress, at)


def recover(progress: Progress, at: int, reason: str, *, step: str = "", by: str = "") -> None:
    """Turn the task around: nothing new is dispatched, running branches are asked to stop."""
    stopping: dict[str, int] = {}
    closing: dict[str, StepStatus] = {}
    for name, state in progress.task.steps.items():
        if state.status is StepStatus.SCHEDULED and state.outstanding:
            stopping[name] = stop_by(progress.definition.steps[name], at)
        elif state.status is StepStatus.SCHEDULED:
            matters = state.uncertain and not progress.definition.steps[name].read_only
            closing[name] = StepStatus.UNKNOWN if matters else StepStatus.FAILED
    progress.record(e.RecoveryStarted(at, reason, step, by, stopping, closing))


def stuck(task: Task) -> tuple[str, ...]:
    """The steps that keep a parked task from going on."""
    wanted = (
        frozenset({StepStatus.FAILED_TO_COMPENSATE})
        if task.status in (TaskStatus.COMPENSATING, TaskStatus.FAILED_TO_COMPENSATE)
        else UNSUCCESSFUL
    )
    return tuple(name for name, state in task.steps.items() if state.status in wanted)


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


def _forward(progress: Progress, at: int) -> None:
    known = progress.task.steps
    active = False
    for name, state in known.items():
        if state.status is StepStatus.SCHEDULED:
            active = True
            if 0 < state.retry_at <= at:
                progress.record(e.AttemptDispatched(at, name, Phase.ACTION, state.attempt + 1))
        elif state.status is StepStatus.WAITING and _is_ready(progress.definition, known, name):
            active = True
            progress.record(e.AttemptDispatched(at, name, Phase.ACTION, 1))
    if active:
        return
    blocked = stuck(progress.task)
    if blocked:
        why = "; ".join(_why(progress.task, name) for name in blocked)
        progress.record(e.TaskParked(at, f"past the point of no return: {why}"))
    else:
        progress.record(e.TaskSucceeded(at))


def _is_ready(definition: Definition, known: dict[str, StepState], step: str) -> bool:
    for before in definition.steps[step].after:
        if known[before].status is not StepStatus.COMPLETED:
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
