"""Reading the stream of dead letters, newest first.

A stream is read forwards: JetStream gives the first message from a sequence on whose subject
matches. The last one before a sequence is found by steps back that double, and then by halves: so
a gap, as the letters of one sender leave that pushed out their older ones, costs a few questions
however long it is.
"""

from __future__ import annotations

from typing import NamedTuple

from headway.agents.subjects import DEAD_STREAM
from headway.agents.wire import Wire
from headway.coordinator.jetstream import Stored, ask, message_at, next_message


class Extent(NamedTuple):
    """Which incarnation of the stream this is, and its sequences from `first` to `last`."""

    created: str
    first: int
    last: int


class Letterbox:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def extent(self) -> Extent:
        info = await ask(self._wire, f"STREAM.INFO.{DEAD_STREAM}")
        state = info["state"]
        return Extent(info["created"], state["first_seq"], state["last_seq"])

    async def letter(self, sequence: int) -> Stored | None:
        """The message of this sequence, whatever it is."""
        return await message_at(self._wire, DEAD_STREAM, sequence)

    async def before(self, end: int, first: int, wanted: str, limit: int) -> list[Stored]:
        """The last `limit` messages from `first` on and before `end` whose subject matches, newest
        first."""
        found: list[Stored] = []
        while len(found) < limit:
            message = await self._last(end, first, wanted)
            if message is None:
                break
            found.append(message)
            end = message.sequence
        return found

    async def _last(self, end: int, first: int, wanted: str) -> Stored | None:
        """The last one before `end`."""
        step, low = 1, None
        while low is None:
            start = max(end - step, first)
            if start >= end:
                return None
            low = await self._next(start, end, wanted)
            if low is None and start == first:
                return None
            if low is None:
                end, step = start, 2 * step
        while low.sequence + 1 < end:
            middle = (low.sequence + 1 + end) // 2
            later = await self._next(middle, end, wanted)
            if later is None:
                end = middle
            else:
                low = later
        return low

    async def _next(self, start: int, end: int, wanted: str) -> Stored | None:
        """The first one from `start` on and before `end`."""
        message = await next_message(self._wire, DEAD_STREAM, wanted, start)
        return message if message is not None and message.sequence < end else None
