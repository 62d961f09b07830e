"""Taking a task to another version of its saga, if its history fits that version.

A history fits if the other version could have led to it: replayed there, every step was begun
only when all that it comes after was over, what was begun is the same in both versions, and the
state that comes out is one that may be. What was not begun yet is as the other version says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.definition import Definition
from headway.sagas.errors import DefinitionError
from headway.sagas.invariants import violations
from headway.sagas.plan import planned
from headway.sagas.progress import Progress
from headway.sagas.replay import fold, replay
from headway.sagas.step import Step
from headway.sagas.task import (
    UNTOUCHED,
    Phase,
    StepStatus,
    Task,
    TaskStatus,
    unborn,
)

_SAME = ("kind", "action", "when", "input", "signal", "saga", "saga_version", "read_only")
_FORWARD = (TaskStatus.RUNNING, TaskStatus.PARKED)
_OVER = (StepStatus.COMPLETED, StepStatus.SKIPPED)


def misfit(origin: Definition, target: Definition, history: Sequence[e.Event]) -> str:
    """Why a task with this history cannot go on under `target`; "" if it can.

    Both are the saga's own definitions, without what the task's plan appends.
    """
    if origin.name != target.name:
        return f"saga {target.name!r} is another saga than {origin.name!r}"
    task = replay(origin, history)
    if task.status not in _FORWARD:
        return _not_forward(task)
    plan = task.beside.plan
    there = {*target.steps, *(appended.step.name for appended in plan)}
    missing = [appended.by for appended in plan if appended.by not in there]
    if missing:
        return f"version {target.version} has no step {missing[0]!r}, which handed off to others"
    try:
        old, new = planned(origin, plan), planned(target, plan)
    except DefinitionError as error:
        return f"what its steps handed off to does not go with version {target.version}: {error}"
    return (
        _first(_other_pivot(old, new, task))
        or _first(_changed(old, new, task))
        or _first(_out_of_order(target, new, history))
        or _first(violations(new, relaid(new, task)))
    )


def relaid(target: Definition, task: Task) -> Task:
    """The task with the steps of `target`, which its plan gives; those begun stay as they are."""
    steps = {name: task.steps.get(name, UNTOUCHED) for name in target.steps}
    return replace(task, steps=steps)


def move(progress: Progress, happened: i.Move) -> None:
    """Go on under the version that `progress` has already. Refused if the task went on since its
    history was looked at."""
    if progress.task.status not in _FORWARD:
        progress.refuse(_not_forward(progress.task))
    elif progress.task.version != happened.seen:
        progress.refuse("the task went on while its history was looked at; ask again")
    else:
        where = (happened.at, happened.origin, happened.target)
        progress.record(e.TaskMoved(*where, happened.by, happened.reason))


def _not_forward(task: Task) -> str:
    return f"the task is {task.status}; only one that goes forward can be moved"


def _changed(old: Definition, new: Definition, task: Task) -> Iterable[str]:
    """Steps that were begun and are not the same in both versions."""
    for name, state in task.steps.items():
        if state == UNTOUCHED:
            continue
        was, will = old.steps[name], new.steps.get(name)
        if will is None:
            yield f"step {name!r} was begun, and version {new.version} does not have it"
            continue
        for field in _differences(was, will):
            yield (
                f"step {name!r} was begun, and its {field} is another in version {new.version}: "
                f"{getattr(will, field)!r} instead of {getattr(was, field)!r}"
            )


def _differences(was: Step, will: Step) -> list[str]:
    return [field for field in _SAME if getattr(was, field) != getattr(will, field)]


def _other_pivot(old: Definition, new: Definition, task: Task) -> Iterable[str]:
    if old.pivot == new.pivot:
        return
    if old.pivot is not None and task.steps[old.pivot].begun:
        yield (
            f"step {old.pivot!r}, the point of no return, was begun, and in version "
            f"{new.version} it is no such point"
        )
    if new.pivot is not None and new.pivot in task.steps and task.steps[new.pivot].begun:
        yield (
            f"step {new.pivot!r} was begun, and only version {new.version} makes it the point of "
            "no return"
        )


def _out_of_order(target: Definition, new: Definition, history: Iterable[e.Event]) -> Iterable[str]:
    """Steps that were begun, or skipped, before one that they come after in the new version."""
    task = unborn(target)
    for event in history:
        begun = _begun(event)
        for before in new.steps[begun].after if begun else ():
            if before in task.steps and task.steps[before].status not in _OVER:
                yield (
                    f"step {begun!r} was begun before step {before!r}, which it comes after in "
                    f"version {new.version}"
                )
        task = fold(task, event)


def _begun(event: e.Event) -> str:
    """The step that an event begins, or decides not to begin; "" if it does neither."""
    match event:
        case e.AttemptDispatched(phase=Phase.ACTION, attempt=1):
            return event.step
        case e.StepSkipped() | e.ConditionFailed() | e.StepKept():
            return event.step
        case _:
            return ""


def _first(found: Iterable[str]) -> str:
    return next(iter(found), "")
