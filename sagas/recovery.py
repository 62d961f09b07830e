"""Turning a task around, and what keeps a parked one from going on."""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas.deadlines import stop_by
from headway.sagas.progress import Progress
from headway.sagas.task import UNSUCCESSFUL, StepStatus, Task, TaskStatus


def recover(progress: Progress, at: int, reason: str, *, failed: str = "", by: str = "") -> None:
    """Turn the task around: nothing new is dispatched, running branches are asked to stop."""
    stopping: dict[str, int] = {}
    closing: dict[str, StepStatus] = {}
    for name, state in progress.task.steps.items():
        step = progress.definition.steps[name]
        if state.status is not StepStatus.SCHEDULED:
            continue
        if state.outstanding and step.kind in ("action", "child"):
            stopping[name] = stop_by(step, at)
        else:
            matters = state.uncertain and not step.without_effect
            closing[name] = StepStatus.UNKNOWN if matters else StepStatus.FAILED
    progress.record(e.RecoveryStarted(at, reason, failed, by, stopping, closing))


def stuck(task: Task) -> tuple[str, ...]:
    """The steps that keep a parked task from going on."""
    wanted = (
        frozenset({StepStatus.FAILED_TO_COMPENSATE})
        if task.status in (TaskStatus.COMPENSATING, TaskStatus.FAILED_TO_COMPENSATE)
        else UNSUCCESSFUL
    )
    return tuple(name for name, state in task.steps.items() if state.status in wanted)


def is_past_return(progress: Progress) -> bool:
    """Whether the point of no return was begun: from there it only goes forward."""
    pivot = progress.definition.pivot
    return pivot is not None and progress.task.steps[pivot].begun
