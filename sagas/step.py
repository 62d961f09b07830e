"""A node of a saga: an agent's action, or something that the coordinator itself waits for.

Kinds beside `action`: an `approval` by a person, a `wait` for a signal, a `sleep`, and a `child`,
which is a task of another saga. The first three have no effect, so nothing of them is undone; a
child is undone by its own compensations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from headway.sagas.retry import STRANGERS_REFUSED, Retry, Timeouts

COMPENSATION_RETRY = Retry(maximum_attempts=20)

Kind = Literal["action", "approval", "wait", "sleep", "child"]
Default = Literal["", "approve", "reject"]

_WITHOUT_EFFECT = ("approval", "wait", "sleep")


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a saga.

    Attributes:
        name: unique within the saga.
        action: the agent and its action, `agent.action`; only of kind `action`.
        compensate: the agent's compensation that undoes the action, if there is one.
        after: the steps that must have completed, or been skipped, before.
        pivot: the point of no return: what comes before is compensated when something fails,
            what comes after is only retried.
        read_only: the action changes nothing, so there is nothing to compensate.
        retry, compensation_retry: policies of the action and of its compensation.
        timeouts: limits of each attempt, and of the whole. An approval, a wait and a child know
            `schedule_to_close` only.
        kind: what the step is; see the module.
        when: a condition on `input` and `results` (of the steps before) in the Common Expression
            Language; where it is false, the step is skipped. A skipped step has no result: ask
            `has(results.name)` first.
        input: what the step's agent or child gets instead of the task's input; None is the task's.
        signal: the name of the signal that a wait is for; its own name if empty.
        seconds: how long a sleep takes.
        saga, saga_version: what a child runs; without a version the newest.
        default: what becomes of an approval that nobody gives in time; "" fails it.
    """

    name: str
    action: str = ""
    compensate: str | None = None
    after: tuple[str, ...] = ()
    pivot: bool = False
    read_only: bool = False
    retry: Retry = Retry()
    compensation_retry: Retry = COMPENSATION_RETRY
    timeouts: Timeouts = Timeouts()
    kind: Kind = "action"
    when: str = ""
    input: Any = None
    signal: str = ""
    seconds: float = 0.0
    saga: str = ""
    saga_version: int | None = None
    default: Default = ""

    __pydantic_config__ = STRANGERS_REFUSED

    @property
    def agent(self) -> str:
        """The agent that carries it out; "" for other kinds than `action`."""
        return self.action.partition(".")[0]

    @property
    def without_effect(self) -> bool:
        """Whether there is never anything of it to undo."""
        return self.read_only or self.kind in _WITHOUT_EFFECT

    @property
    def undoable(self) -> bool:
        """Whether its effect can be undone."""
        return self.compensate is not None or (self.kind == "child" and not self.without_effect)

    @property
    def waits_for(self) -> str:
        """The name of the signal that a wait is for."""
        return self.signal or self.name
