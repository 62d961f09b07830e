"""What a handler is told about the attempt it carries out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from headway.agents.identity import ACTION, operation_id
from headway.agents.messages import Phase


def _unheard() -> None:
    """The heartbeat of a context that no worker made."""


@dataclass(slots=True, eq=False)
class Context:
    """One attempt of one step; safe to read from a sync handler's thread.

    `input` is the task's raw JSON input, `results` the results of the steps that this one comes
    after. `outcome_unknown` tells a compensation that nobody knows whether the action happened.
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
    deadline_at: float | None = None  # seconds since the epoch
    cancellation: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    beat: Callable[[], object] = field(default=_unheard, repr=False)

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

    async def heartbeat(self) -> None:
        """Say that the handler is alive, as often as you like: most calls cost nothing.

        Only steps with a `heartbeat` timeout need it. A sync handler calls `ctx.beat()`.
        """
        self.beat()

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
