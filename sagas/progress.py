"""The events that one input leads to, gathered while the state is folded along."""

from __future__ import annotations

from typing import Protocol

from headway.sagas import events as e
from headway.sagas.checks import UNCHECKED, Checks
from headway.sagas.definition import Definition
from headway.sagas.plan import planned
from headway.sagas.replay import fold
from headway.sagas.task import Phase, StepState, Task


class OfAttempt(Protocol):
    """What names an attempt."""

    @property
    def step(self) -> str: ...
    @property
    def phase(self) -> Phase: ...
    @property
    def attempt(self) -> int: ...


class Progress:
    """Always holds: `task` is the fold of the state it began with and `events`; `definition` is
    what the plan of `task` gives."""

    __slots__ = ("checks", "definition", "events", "refusal", "task")

    def __init__(self, definition: Definition, task: Task, checks: Checks = UNCHECKED) -> None:
        self.definition = definition
        self.task = task
        self.checks = checks
        self.events: list[e.Event] = []
        self.refusal = ""

    def record(self, event: e.Event) -> None:
        self.task = fold(self.task, event)
        self.events.append(event)
        if type(event) is e.StepsAppended:
            self.definition = planned(self.definition, self.task.beside.plan)

    def refuse(self, reason: str) -> None:
        self.refusal = reason

    def is_current(self, attempt: OfAttempt) -> bool:
        """Whether this attempt is the one outstanding now."""
        state = self.task.steps[attempt.step]
        return (
            state.outstanding and state.phase is attempt.phase and state.attempt == attempt.attempt
        )

    def state(self, step: str) -> StepState:
        return self.task.steps[step]
