"""Whether the machine of today decides a recorded history as it was decided. Pure.

A history holds what came of each input, not the inputs. So for the events that come next, every
input that could have led to them is put before the machine again: one must lead to just these.
Exact times of retries, which were drawn, and the words of reasons do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headway.sagas import events as e
from headway.sagas.causes import causes
from headway.sagas.checks import UNCHECKED, Checks
from headway.sagas.definition import Definition
from headway.sagas.errors import DefinitionError, ImpossibleInput
from headway.sagas.inputs import Input
from headway.sagas.moving import relaid
from headway.sagas.plan import planned
from headway.sagas.replay import fold
from headway.sagas.task import Task, unborn
from headway.sagas.transition import transition

_MACHINES_WORDS = (
    e.TaskParked,
    e.TaskFailedToCompensate,
    e.TaskHeld,
    e.RecoveryStarted,
    e.OutputRejected,
    e.TaskResumed,
)


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first event that is not decided as it was. `version` is its number in the history;
    `recorded` is None where the history ends before it, `decided` where the machine now makes
    nothing of what happened."""

    version: int
    recorded: e.Event | None
    decided: e.Event | None


@dataclass(frozen=True, slots=True)
class Retraced:
    """`task` is the state that the history leads to, as far as it was decided as it was: `events`
    of it, in `decisions` steps of the machine."""

    task: Task
    events: int
    decisions: int
    divergence: Divergence | None = None


def retrace(
    definition: Definition,
    history: Sequence[e.Event],
    checks: Callable[[Definition], Checks] = lambda _: UNCHECKED,
    moved_to: Callable[[int], Definition] | None = None,
) -> Retraced:
    """Decide a whole history anew under `definition`, the version that the task began with.

    `checks` gives what judges conditions and the output; `moved_to` the versions that the task was
    moved to, or None to keep to `definition` throughout.
    """
    own, task, done, decisions = definition, None, 0, 0
    while done < len(history):
        left = history[done:]
        if task is not None and isinstance(left[0], e.TaskMoved) and moved_to is not None:
            own = moved_to(left[0].target)
            task = relaid(planned(own, task.beside.plan), task)
        try:
            found = _longest(own, task, left, checks(own))
        except DefinitionError:  # what was handed off to does not go with this definition
            found = 0, None
        length, instead = found
        if instead is not None or not length:
            before = task or unborn(own)
            recorded = left[length] if length < len(left) else None
            divergence = Divergence(done + length + 1, recorded, instead)
            return Retraced(before, done, decisions, divergence)
        for event in left[:length]:
            task = fold(unborn(own) if task is None else task, event)
        done, decisions = done + length, decisions + 1
    return Retraced(task or unborn(own), done, decisions)


def _longest(
    own: Definition, task: Task | None, left: Sequence[e.Event], checks: Checks
) -> tuple[int, e.Event | None]:
    """How many of the next events one input explains. If none explains any whole: how far the best
    came, and what the machine decides there instead."""
    definition = own if task is None else planned(own, task.beside.plan)
    explained, best, instead = 0, -1, None
    for cause in causes(definition, task or unborn(own), left):
        decided = _decided(definition, task, cause, checks)
        alike = _alike(decided, left)
        if decided and alike == len(decided):
            explained = max(explained, alike)
        elif alike > best and decided:
            best, instead = alike, decided[alike]
    if explained:
        return explained, None
    return max(best, 0), instead


def _decided(
    definition: Definition, task: Task | None, cause: Input, checks: Checks
) -> tuple[e.Event, ...]:
    try:
        return transition(definition, task, cause, checks).events
    except ImpossibleInput:
        return ()


def _alike(decided: Sequence[e.Event], recorded: Sequence[e.Event]) -> int:
    """How many events, from the first on, say the same."""
    pairs = enumerate(zip(decided, recorded, strict=False))
    same = (place for place, (now, then) in pairs if _said(now) != _said(then))
    return next(same, min(len(decided), len(recorded)))


def _said(event: e.Event) -> e.Event:
    """What counts of an event."""
    if isinstance(event, _MACHINES_WORDS):
        event = replace(event, reason="")
    match event:
        case e.AttemptFailed() | e.AttemptTimedOut():
            return replace(event, retry_at=min(event.retry_at, 1))
        case e.ConditionFailed():
            return replace(event, error=replace(event.error, message=""))
        case e.RecoveryStarted():
            return replace(event, stopping=dict.fromkeys(event.stopping, 0))
        case _:
            return event
