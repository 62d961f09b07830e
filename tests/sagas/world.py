"""One place in a search: a task, what an onlooker knows of it, and what is really so.

Time has no measure here: a state holds only what is due and what is not yet.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import lru_cache

from corpus import Shape
from downstream import Rows
from headway.sagas import Definition, StepState, Task, planned
from headway.sagas.circumstances import ORDINARY, Circumstances
from headway.sagas.task import Failure
from headway.sagas.waiting import CHILD_COMPENSATED, CHILD_REFUSED
from menu import LATER, NOW
from offspring import Children
from witness import Witness

_SOME_FAILURE = Failure("Some", "failure")


@dataclass(frozen=True, slots=True)
class World:
    """A task, what an onlooker knows of it, what is downstream of it, and its children."""

    task: Task
    seen: Witness
    rows: Rows
    children: Children

    def key(self) -> Hashable:
        task = self.task
        beside: Hashable = task.beside
        if task.beside.plan:  # what is handed off to need not be hashable
            beside = task.beside._replace(plan=()), *(each.step.name for each in task.beside.plan)
        return (
            task.status,
            task.incident,
            beside,
            *task.steps.values(),
            *self.seen.values(),
            self.rows,
            *self.children.values(),
        )


def planned_for(shape: Shape, task: Task) -> Definition:
    """The definition that a task of this shape runs."""
    return planned(shape.definition, task.beside.plan)


def canonical(task: Task) -> Task:
    """The state without what cannot matter: when things were, and in which words."""
    return Task(
        task.status,
        1,
        {name: _canonical_step(_hashable(state)) for name, state in task.steps.items()},
        "because" if task.reason else "",
        "incident" if task.incident else "",
        "because" if task.cause else "",
        task.beside if task.beside is ORDINARY else _canonical_beside(task.beside),
    )


def _canonical_beside(beside: Circumstances) -> Circumstances:
    bounds = beside.bounds
    if bounds is not None and bounds.deadline:
        bounds = replace(bounds, deadline=LATER)
    return beside._replace(
        bounds=bounds,
        holds=tuple(replace(hold, reason="because", since=NOW) for hold in beside.holds),
        rejection="because" if beside.rejection else "",
    )


def _hashable(state: StepState) -> StepState:
    """An approval's result is a dict; who gave it does not matter."""
    return state._replace(result="approved") if isinstance(state.result, dict) else state


def _canonical_error(error: Failure | None) -> Failure | None:
    if error is None or error.type in (CHILD_COMPENSATED, CHILD_REFUSED):
        return error
    return _SOME_FAILURE


@lru_cache(maxsize=100_000)
def _canonical_step(state: StepState) -> StepState:
    return state._replace(
        dispatched_at=NOW if state.dispatched_at else 0,
        started_at=NOW if state.started_at else 0,
        heartbeat_at=NOW if state.heartbeat_at else 0,
        scheduled_at=NOW if state.scheduled_at else 0,
        retry_at=LATER if state.retry_at else 0,
        stop_by=LATER if state.stop_by else 0,
        error=_canonical_error(state.error),
    )
