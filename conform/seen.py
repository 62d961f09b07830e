"""What an agent was seen to do, in the order in which nats-server passed it on.

Always holds: entries are only ever added; whoever waits for one looks again after each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

from headway.agents.messages import COMPLETED, FAILED, TIMED_OUT

Kind = Literal[
    "delivery",  # a command, on its way to the agent
    "answer",  # what the agent answered to a delivery: an ack and the like
    "event",
    "claim",
    "key",
    "letter",  # a dead letter of the agent's
    "presence",
]

ENDINGS = (COMPLETED, FAILED, TIMED_OUT)  # the types of events that end an attempt

T = TypeVar("T")


class Broken(Exception):
    """Something that the contract demands does not hold; the text says what was seen instead."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One message. `at` is in seconds of the loop's time; `sequence` is the stream's, of deliveries
    and answers, and `delivered` which delivery it was, from 1. An answer's subject is the reply
    subject of its delivery."""

    kind: Kind
    at: float
    subject: str
    body: bytes
    reply: str = ""
    sequence: int = 0
    delivered: int = 0


class Log:
    """Everything that was seen, oldest first."""

    def __init__(self) -> None:
        self._entries: list[Seen] = []
        self._more = asyncio.Event()

    def add(self, seen: Seen) -> None:
        self._entries.append(seen)
        self._more.set()

    def of(self, kind: Kind) -> Iterator[Seen]:
        """All of one kind."""
        return (each for each in self._entries if each.kind == kind)

    def place(self, seen: Seen) -> int:
        """Where an entry stands among all others."""
        return self._entries.index(seen)

    async def until(self, find: Callable[[], T | None], within_s: float, what: str) -> T:
        """What `find` finds, once it does; Broken says that `what` was not seen in time."""
        try:
            async with asyncio.timeout(within_s):
                while (found := find()) is None:
                    self._more.clear()
                    await self._more.wait()
                return found
        except TimeoutError:
            raise Broken(f"{what}: not seen within {within_s:g} s") from None
