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


def advance(progress: Progress, at: int) -> None:
    """Record everything that the state calls for now."""
    while progress.task.status is TaskStatus.RUNNING:
        failed = _failed_before_pivot(progress.definition, progress.task)
        if failed is not None:
            recover(progress, at, _why(progress.task, failed), failed=failed)
        elif _forward(progress, at):
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
    """Begin what is ready, or end what is done. False: something else came of it, look again."""
    held = progress.task.beside.hold
    active = False
    for name, step in progress.definition.steps.items():
        state = progress.task.steps[name]
        if state.status is StepStatus.SCHEDULED:
            if held is None:
                active = True
                if 0 < state.retry_at <= at:
                    progress.record(e.AttemptDispatched(at, name, Phase.ACTION, state.attempt + 1))
            elif state.outstanding and step.kind in ("action", "child"):
                active = True
        elif (
            held is None
            and state.status is StepStatus.WAITING
            and _is_ready(progress.definition, progress.task.steps, name)
        ):
            _begin(progress, step, at)
            status = progress.task.steps[name].status
            if status is StepStatus.FAILED:
                return False
            active = active or status is StepStatus.SCHEDULED
    return active or _came_to_rest(progress, at)


def _begin(progress: Progress, step: Step, at: int) -> None:
    """Dispatch a step for the first time, unless its condition keeps it from that."""
    if step.when:
        verdict = progress.checks.when(step.when, results_of(progress.task))
        if isinstance(verdict, Failure):
            progress.record(e.ConditionFailed(at, step.name, verdict))
            return
        if not verdict:
            progress.record(e.StepSkipped(at, step.name))
            return
    progress.record(e.AttemptDispatched(at, step.name, Phase.ACTION, 1))
    if step.kind == "wait":
        serve_signal(progress, step, at)


def _came_to_rest(progress: Progress, at: int) -> bool:
    """Nothing is going on: park or succeed. False: it goes on after all."""
    held, blocked = progress.task.beside.hold, stuck(progress.task)
    if held is not None:
        progress.record(e.TaskParked(at, held.reason))
        return True
    if blocked:
        why = "; ".join(_why(progress.task, name) for name in blocked)
        progress.record(e.TaskParked(at, f"past the point of no return: {why}"))
        return True
    return finish(progress, at)


def _is_ready(definition: Definition, known: dict[str, StepState], step: str) -> bool:
    for before in definition.steps[step].after:
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
