"""Forking: a new task of the same saga that keeps what another one finished, and does the rest.

Kept are the results of all steps that do not come after the one from which is forked. A fork never
does those again and never undoes them: that stays the duty of the task that did them. Steps that
were skipped are decided again, by the same conditions on the same results.
"""

from __future__ import annotations

from typing import Any

from headway.sagas import events as e
from headway.sagas.circumstances import Fork
from headway.sagas.definition import Definition
from headway.sagas.errors import ForkRefused
from headway.sagas.progress import Progress
from headway.sagas.step import Step
from headway.sagas.task import (
    UNDER_COMPENSATION,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
    may_need_compensation,
)

_TURNED = (TaskStatus.COMPENSATED, TaskStatus.FAILED_TO_COMPENSATE)


def kept(definition: Definition, task: Task, step: str) -> dict[str, Any]:
    """The results that a fork of `task` from `step` keeps, by step; ForkRefused says why there can
    be no such fork. `definition` is the one that the task's plan gives."""
    if step not in definition.steps:
        known = ", ".join(definition.steps)
        raise ForkRefused(f"there is no step {step!r} in this task; its steps are {known}")
    if task.beside.child:
        raise ForkRefused("the task is a step of another one; fork that one")
    if not (task.ended or task.parked):
        raise ForkRefused(
            f"the task is {task.status}; only one that ended or is parked can be forked: "
            "wait until it is, or cancel it"
        )
    anew = definition.descendants[step] | {step}
    for appended in task.beside.plan:
        if appended.by not in anew:
            raise ForkRefused(
                f"step {appended.by!r} handed off to others, which a fork cannot take over; "
                f"{_REMEDY}"
            )
    found: dict[str, Any] = {}
    for name, described in definition.steps.items():
        if name not in anew and _is_kept(definition, task, described):
            found[name] = task.steps[name].result
    return found


_REMEDY = "fork from it or from a step that it comes after, or submit the task anew"


def _is_kept(definition: Definition, task: Task, step: Step) -> bool:
    """Whether a step that is not to be done anew has a result; ForkRefused if it cannot count."""
    state = task.steps[step.name]
    if state.status in UNDER_COMPENSATION:
        raise ForkRefused(f"step {step.name!r} was undone; {_REMEDY}")
    if task.status in _TURNED and may_need_compensation(definition, task, step.name):
        raise ForkRefused(f"step {step.name!r} is still to be undone; {_REMEDY}")
    if _is_doubtful(state) and not step.without_effect:
        raise ForkRefused(
            f"step {step.name!r} may have taken effect, and nobody knows; settle it first, or "
            f"{_REMEDY}"
        )
    return state.status is StepStatus.COMPLETED


def _is_doubtful(state: StepState) -> bool:
    """Whether an action that did not complete may have an effect nevertheless."""
    return state.status is not StepStatus.COMPLETED and (state.uncertain or state.known)


def begin(progress: Progress, at: int, fork: Fork) -> None:
    """What a forked task begins with: where it is from, and what it keeps."""
    progress.record(e.TaskForked(at, fork.origin, fork.step, fork.by, fork.reason))
    for name in progress.definition.steps:
        if name in fork.kept:
            progress.record(e.StepKept(at, name, fork.kept[name]))
