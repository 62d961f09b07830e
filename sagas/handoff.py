"""Handing off: a step's outcome appends further steps to the plan of its task."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import orjson
from headway.sagas import events as e
from headway.sagas.circumstances import Appended, Bounds
from headway.sagas.errors import DefinitionError
from headway.sagas.loops import TRAIL_MAX, repeating
from headway.sagas.plan import named, planned
from headway.sagas.progress import Progress
from headway.sagas.step import Step
from headway.sagas.task import TaskStatus

HANDOFF_REFUSED = "HandoffRefused"
LOOP_DETECTED = "LoopDetected"


def hand_off(progress: Progress, by: str, wanted: tuple[Step, ...], at: int) -> None:
    """Append steps, after `by`. What the manifest or the saga does not allow parks the task, for
    what `by` did is done; so does a loop of hand-offs."""
    task = progress.task
    if not wanted or task.status not in (TaskStatus.RUNNING, TaskStatus.PARKED):
        return
    steps = named(progress.definition, wanted)
    try:
        _check_bounds(task.beside.bounds, steps, len(task.steps))
        appended = tuple(Appended(by, step) for step in steps)
        planned(progress.definition, task.beside.plan + appended)
    except DefinitionError as error:
        why = f"step {by!r} hands off, refused: {error}"
        progress.record(e.TaskHeld(at, HANDOFF_REFUSED, why, by))
        return
    trail = list(task.beside.trail)
    looped = ""
    for signature in dict.fromkeys(_signature(step) for step in steps):  # side by side is no loop
        trail.append(signature)
        looped = looped or repeating(trail)
    progress.record(e.StepsAppended(at, by, steps, tuple(trail[-TRAIL_MAX:])))
    if looped:
        why = f"hand-offs go round in a loop: {looped}"
        progress.record(e.TaskHeld(at, LOOP_DETECTED, why, by))


def _check_bounds(bounds: Bounds | None, steps: Iterable[Step], already: int) -> None:
    if bounds is None:
        return
    wanted = list(steps)
    for step in wanted:
        for action in filter(None, (step.action, step.compensate)):
            agent = action.partition(".")[0]
            if bounds.agents is not None and agent not in bounds.agents:
                raise DefinitionError(f"the manifest does not allow agent {agent!r}")
    if bounds.max_steps and already + len(wanted) > bounds.max_steps:
        raise DefinitionError(
            f"the manifest allows {bounds.max_steps} steps; there would be {already + len(wanted)}"
        )


def _signature(step: Step) -> str:
    """What a hand-off is told by: whom it is for, and a digest of what it gets."""
    body = orjson.dumps(step.input, option=orjson.OPT_SORT_KEYS)
    return f"{step.action}#{hashlib.sha256(body).hexdigest()[:8]}"
