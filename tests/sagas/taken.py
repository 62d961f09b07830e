"""One step of a search, as the laws are told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headway.sagas import (
    Action,
    Definition,
    Dispatch,
    Phase,
    StartChild,
    Task,
    Transition,
)
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.checks import UNCHECKED, Checks
from witness import Witness


@dataclass(frozen=True, slots=True)
class Taken:
    """One transition: the state before, what happened, what came of it, and what was known.

    `definition` is that of the state after.
    """

    definition: Definition
    before: Task | None
    happened: i.Input
    moved: Transition
    seen_before: Witness
    seen: Witness
    checks: Checks = UNCHECKED

    @property
    def after(self) -> Task:
        return self.moved.task


Law = Callable[[Taken], Iterator[str]]


def begins(action: Action) -> bool:
    """Whether it begins or goes on with something, instead of undoing it."""
    if isinstance(action, StartChild):
        return True
    return isinstance(action, Dispatch) and action.phase is Phase.ACTION


def ended(taken: Taken, step: str) -> bool:
    """Whether an attempt of this step ended."""
    return any(
        isinstance(
            event,
            e.AttemptFailed
            | e.AttemptTimedOut
            | e.StepCompleted
            | e.StepCompensated
            | e.EmptyDoubted,
        )
        and event.step == step
        for event in taken.moved.events
    )
