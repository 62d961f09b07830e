"""What a check is, and what it is given."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from headway.conform.agent_process import AgentProcess
from headway.conform.order import Order
from headway.conform.standin import StandIn
from headway.coordinator.supervisor import Supervised

Level = Literal["MUST", "SHOULD"]


class NotTested(Exception):
    """A check that cannot be made as the kit was started; the text says what it takes."""


@dataclass
class Kit:
    """The agent under test, who stands in for its coordinators, and nats-server.

    `process`: the agent's, if the kit started it.
    """

    standin: StandIn
    nats: Supervised
    process: AgentProcess | None = None
    orders: list[Order] = field(default_factory=list)

    def order(self, action: str, input: Any = None, **options: Any) -> Order:
        """A command for the agent, still to be sent."""
        order = Order(self.standin, action, input, **options)
        self.orders.append(order)
        return order

    def kill_nats(self) -> None:
        """With SIGKILL; its supervisor starts it again."""
        os.kill(self.nats.pid, signal.SIGKILL)


Run = Callable[[Kit], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """`says` is what has to hold, in words. What is run `alone` disturbs others."""

    name: str
    level: Level
    says: str
    run: Run
    alone: bool = False


class Checks:
    """Those of one module, in the order in which they stand there."""

    def __init__(self) -> None:
        self.all: list[Check] = []

    def must(self, says: str, *, alone: bool = False) -> Callable[[Run], Run]:
        """Declare a check, named after its function: the contract demands it."""
        return self._declare("MUST", says, alone)

    def should(self, says: str, *, alone: bool = False) -> Callable[[Run], Run]:
        """As `must`, of what the contract only recommends."""
        return self._declare("SHOULD", says, alone)

    def _declare(self, level: Level, says: str, alone: bool) -> Callable[[Run], Run]:
        def declare(run: Run) -> Run:
            name = run.__name__.replace("_", "-")
            self.all.append(Check(name, level, says, run, alone))
            return run

        return declare
