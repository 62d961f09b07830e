"""What must hold of any state; asserted by tests and never consulted for decisions."""

from __future__ import annotations

from headway.sagas.definition import Definition
from headway.sagas.task import (
    ACTIVE,
    UNDER_COMPENSATION,
    Phase,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
    may_need_compensation,
)

_OVER = (StepStatus.SKIPPED, StepStatus.COMPLETED)  # also of what was never dispatched


def violations(definition: Definition, task: Task) -> list[str]:
    """What does not hold of this state though it must; empty when all is well. `definition` is the
    one that the task's plan gives."""
    found = [
        f"step {name}: {wrong}"
        for name, state in task.steps.items()
        for wrong in _step_violations(task, state)
    ]
    if task.steps.keys() != definition.steps.keys():
        return [*found, "the steps are not the definition's"]
    active = [name for name, state in task.steps.items() if state.status in ACTIVE]
    if task.ended or task.parked:
        found += [
            f"step {name} is active in a task that is {task.status}"
            for name in active
            if not _may_rest(definition, task, name)
        ]
    elif not active and task.version > 0:
        found.append(f"nothing is outstanding and no timer is set in a task that is {task.status}")
    if task.beside.holds and task.status not in (TaskStatus.RUNNING, TaskStatus.PARKED):
        found.append(f"held though it is {task.status}")
    found += _ended_wrongly(definition, task)
    for name, state in task.steps.items():
        step = definition.steps[name]
        if state.actions and any(
            task.steps[before].actions == 0 and task.steps[before].status not in _OVER
            for before in definition.ancestors[name]
        ):
            found.append(f"step {name} was dispatched before a step that it comes after")
        if state.status in UNDER_COMPENSATION and not step.undoable:
            found.append(f"step {name} is under compensation but has none")
    return found


def _may_rest(definition: Definition, task: Task, name: str) -> bool:
    """Whether a step of a task that was parked by a hold may be active: it is due once that ends,
    or waits for something that no agent does."""
    if task.status is not TaskStatus.PARKED or not task.beside.holds:
        return False
    waits = definition.steps[name].kind in ("approval", "wait", "sleep")
    return waits or task.steps[name].retry_at > 0


def _ended_wrongly(definition: Definition, task: Task) -> list[str]:
    if task.status is TaskStatus.SUCCEEDED:
        return [
            f"step {name} is {state.status} in a task that succeeded"
            for name, state in task.steps.items()
            if state.status not in (StepStatus.COMPLETED, StepStatus.SKIPPED)
        ]
    if task.status is TaskStatus.COMPENSATED:
        return [
            f"step {name} may have an effect left in a task that is compensated"
            for name in task.steps
            if may_need_compensation(definition, task, name)
        ]
    return []


def _step_violations(task: Task, state: StepState) -> list[str]:
    found = []
    if state.outstanding and state.retry_at:
        found.append("an attempt is outstanding and another one is due")
    if state.status in ACTIVE and not state.outstanding and not state.retry_at:
        found.append("active without an attempt outstanding or due")
    if state.status not in ACTIVE and (state.outstanding or state.retry_at):
        found.append("an attempt is outstanding or due in a step that is not active")
    if state.status is StepStatus.COMPLETED and not state.known:
        found.append("completed without a result")
    if state.status is StepStatus.FAILED and state.uncertain:
        found.append("failed though its effect is uncertain")
    if state.status is StepStatus.COMPENSATING and task.status is TaskStatus.RUNNING:
        found.append("compensating in a task that is running")
    if state.kept and (state.status is not StepStatus.COMPLETED or state.actions):
        found.append("kept though it was done here")
    if state.status is StepStatus.SKIPPED and state.actions:
        found.append("skipped though it was dispatched")
    acting = state.status is StepStatus.SCHEDULED and state.phase is Phase.ACTION
    if acting and state.attempt != state.actions:
        found.append("its attempt is not the last one dispatched")
    return found
