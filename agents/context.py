"""What a handler is told about the attempt it carries out, and what it may do within it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar, overload
from uuid import UUID

from headway.agents.connection import Connection
from headway.agents.documents import Documents
from headway.agents.entries import Usage
from headway.agents.errors import DeclarationError, Unavailable
from headway.agents.identity import ACTION, operation_id
from headway.agents.invocations import Calls
from headway.agents.messages import Phase
from headway.agents.tools import Metered

T = TypeVar("T")


def _unheard(_progress: Any = None) -> None:
    """The heartbeat of a context that no worker made."""


@dataclass(slots=True, eq=False)
class AttemptFacts:
    """One attempt of one step; safe to read from a sync handler's thread.

    `input` is the task's raw JSON input, or the step's own if it was handed one; `results` are
    those of the steps that this one comes after. `outcome_unknown` tells a compensation that nobody
    knows whether the action happened. `goal` is that of the task's manifest; `rejection` says why
    the task's output was not accepted, when it is done again.
    """

    task: UUID
    saga: str
    step: str
    phase: Phase
    attempt: int
    epoch: int
    agent: str
    traceparent: str
    input: Any = field(default=None, repr=False)
    results: dict[str, Any] = field(default_factory=dict, repr=False)
    outcome_unknown: bool = False
    goal: str = ""
    rejection: str = ""
    deadline_at: float | None = None  # seconds since the epoch
    cancellation: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    beat: Callable[..., object] = field(default=_unheard, repr=False)
    calls: Calls | None = field(default=None, repr=False)
    connection: Connection | None = field(default=None, repr=False)

    @property
    def operation_id(self) -> UUID:
        """The same for all attempts of this operation: what a downstream system dedupes on."""
        return operation_id(self.task, self.step, self.phase)

    @property
    def action_operation_id(self) -> UUID:
        """The operation id of the step's action: what a compensation undoes."""
        return operation_id(self.task, self.step, ACTION)

    @property
    def deadline(self) -> datetime | None:
        """When the attempt counts as timed out and the handler is stopped; None is never."""
        return None if self.deadline_at is None else datetime.fromtimestamp(self.deadline_at, UTC)

    @property
    def cancelled(self) -> bool:
        """Whether the work is no longer wanted; stopping early is up to the handler."""
        return self.cancellation.is_set()

    async def wait_cancelled(self) -> None:
        """Return when the work is no longer wanted."""
        await self.cancellation.wait()

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records carry the task, the step, the phase and the attempt."""
        return logging.LoggerAdapter(
            logging.getLogger(f"headway.agents.{self.agent}"),
            {
                "task": str(self.task),
                "step": self.step,
                "phase": self.phase,
                "attempt": self.attempt,
            },
        )


@dataclass(slots=True, eq=False)
class Context(AttemptFacts):
    """What a handler is given: the facts of its attempt, and what it may do."""

    @overload
    async def call(
        self, tool: Callable[..., Awaitable[Metered[T]]], *args: Any, key: str = "", **kwargs: Any
    ) -> T: ...

    @overload
    async def call(
        self, tool: Callable[..., Awaitable[T]], *args: Any, key: str = "", **kwargs: Any
    ) -> T: ...

    @overload
    async def call(
        self, tool: Callable[..., Metered[T]], *args: Any, key: str = "", **kwargs: Any
    ) -> T: ...

    @overload
    async def call(self, tool: Callable[..., T], *args: Any, key: str = "", **kwargs: Any) -> T: ...

    async def call(self, tool: Callable[..., Any], *args: Any, key: str = "", **kwargs: Any) -> Any:
        """The result of a tool, which is run unless the journal has it from before.

        Calls are found again by their order: each time the handler runs it must make the same
        calls, with the same arguments. One whose place may change (in a branch that runs beside
        others and makes several calls) needs a `key` of its own.

        Raises ToolFailed, which may be caught, when the tool failed, or a person rejected the call
        (`kind` is "GateRejected"). Superseded and Halted end the attempt even if they are caught.
        """
        return await self._calls().call(tool, args, kwargs, key)

    async def checkpoint(self, state: Any) -> None:
        """Keep `state`, JSON or what becomes it, for whoever takes this attempt up again."""
        await self._calls().checkpoint(state)

    def restore(self) -> Any:
        """The state that was kept last, as JSON; None if none was.

        Whoever asks for it goes on from there: the calls that follow are those that followed the
        checkpoint. A handler that never asks makes all its calls again, and has their results.
        """
        return self._calls().restore()

    async def note(self, text: str) -> None:
        """Write words for people into the journal."""
        await self._calls().note(text)

    @property
    def usage(self) -> Usage:
        """What the task's model calls have used so far, as of the last call."""
        return Usage() if self.calls is None else self.calls.usage

    @property
    def documents(self) -> Documents:
        """State that agents share. Each write says which task and step made it."""
        if self.connection is None:
            raise Unavailable("a context that no worker made has no connection, so no documents")
        return Documents(self.connection, agent=self.agent, task=self.task, step=self.step)

    async def heartbeat(self, progress: Any = None) -> None:
        """Say that the handler is alive, as often as you like: most calls cost nothing.

        Only steps with a `heartbeat` timeout need it. `progress` is any JSON, for people to see in
        the task's status. A sync handler calls `ctx.beat(progress)`.
        """
        self.beat(progress)

    def _calls(self) -> Calls:
        if self.calls is None:
            raise DeclarationError(
                f"the {self.phase} has no journal; declare its tools: tools=[…] at its decorator "
                "(an empty list, if it calls none)"
            )
        return self.calls
