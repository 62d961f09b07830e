"""The feed for whoever listens: the news of all tasks, a saga's or one task's, from a position on.

One reader of HW_FEED serves all listeners of a coordinator, and only while there are any. Always
holds: a listener that goes on after a position misses nothing that was stored since, or is told
that there is a gap; hints (`submitted`, `progressed`) may be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from headway.agents.feed_views import FeedRequest
from headway.agents.subjects import feed_subject
from headway.agents.wire import Wire
from headway.coordinator.errors import BusUnavailable
from headway.coordinator.feed_ring import FeedEvent, Position, Ring
from headway.coordinator.feed_stream import Extent, LiveFeed, extent_of, stored
from headway.coordinator.places import Places

LISTENERS_MAX = 256  # of one coordinator
LISTENERS_OF_ONE_MAX = 64  # with one token
BEGIN_WITHIN_S = 5.0
KEEP_ALIVE_S = 15.0
GATHER_S = 0.05  # news of so long are handed over at once
HINTS_AT_ONCE = 50
ANEW = "HW_FEED was made anew; come again with your position"


@dataclass(frozen=True, slots=True)
class Gap:
    """What was stored after `asked` is not all there any more; it goes on from `first`."""

    asked: int
    first: int
    at: datetime


class Part(NamedTuple):
    """What a listener gets next; without events, a sign of life. `position` is where it stands."""

    position: Position
    events: Sequence[FeedEvent] = ()
    gap: Gap | None = None


class Feed:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._live = LiveFeed(wire, self._tell)
        self._news = asyncio.Event()
        self._places = Places(LISTENERS_MAX, LISTENERS_OF_ONE_MAX, "listeners to the feed")
        self._reading: dict[asyncio.Task[None], None] = {}
        self._closed = False

    def close(self) -> None:
        """End what all listeners get: this coordinator leaves."""
        self._closed = True
        self._tell()

    async def listen(
        self, request: FeedRequest, after: Position | None, who: str
    ) -> AsyncGenerator[Part]:
        """What is asked for, after a position or from now on, until this coordinator leaves.

        Refusal if too many listen (503), or too many with the token `who` (429). BusUnavailable if
        JetStream is away, or its store was lost: the listener comes again with its position.
        """
        async with self._attended(who):
            ring = await self._ring()
            place: int | None = ring.head
            at = ring.position
            if after is not None:
                gap, at = _begin(after, await extent_of(self._wire))
                place = None
                if gap is not None:
                    yield Part(at, gap=gap)
            yield Part(at)
            while not self._closed:
                ring = await self._ring()
                if ring.position.stream != at.stream:
                    raise BusUnavailable(ANEW)
                place = ring.place_after(at.sequence) if place is None else place
                events = None if place is None else ring.since(place)
                if events is None:
                    async with aclosing(self._stored(request, at)) as parts:
                        async for part in parts:
                            at = part.position
                            yield part
                    place = None
                    continue
                place = ring.head
                news = _news(events, request, at.sequence)
                at = max(at, ring.position)
                if news:
                    yield Part(at, news)
                    await asyncio.sleep(GATHER_S)
                elif not await self._hear(ring, place):
                    yield Part(at)

    async def _stored(self, request: FeedRequest, at: Position) -> AsyncGenerator[Part]:
        """What the stream holds after a position, up to where it ends now."""
        extent = await extent_of(self._wire)
        if extent.stream != at.stream:
            raise BusUnavailable(ANEW)
        wanted = feed_subject(request.saga or "*", str(request.task or "*"), "*")
        async with aclosing(stored(self._wire, at.sequence, [wanted])) as pages:
            async for page in pages:
                at = at._replace(sequence=page[-1].sequence)
                yield Part(at, [event for event in page if event.is_wanted(request)])
        yield Part(at._replace(sequence=max(at.sequence, extent.last)))

    async def _hear(self, ring: Ring, place: int) -> bool:
        """Wait for news after a place; False if none came for KEEP_ALIVE_S."""
        loop = asyncio.get_running_loop()
        until = loop.time() + KEEP_ALIVE_S
        while self._live.ring is ring and ring.head == place and not self._closed:
            news = self._news
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await news.wait()
                    continue
            return False
        return True

    async def _ring(self) -> Ring:
        """The ring, once the stream was reached."""
        until = asyncio.get_running_loop().time() + BEGIN_WITHIN_S
        while self._live.ring is None:
            news = self._news
            try:
                async with asyncio.timeout_at(until):
                    await news.wait()
            except TimeoutError as error:
                raise BusUnavailable("JetStream does not hand out the feed") from error
        return self._live.ring

    @asynccontextmanager
    async def _attended(self, who: str) -> AsyncIterator[None]:
        """While somebody listens, the stream is read."""
        first = not self._places.count
        try:
            with self._places.taken(who):
                if first:
                    self._live = LiveFeed(self._wire, self._tell)
                    reading = asyncio.create_task(self._live.run())
                    self._reading[reading] = None
                    reading.add_done_callback(self._reading.pop)
                yield
        finally:
            if not self._places.count:
                for reading in self._reading:
                    reading.cancel()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _begin(after: Position, extent: Extent) -> tuple[Gap | None, Position]:
    """Where to go on in a stream after a position that a listener had; and the gap, if there is."""
    there = not after.stream or after.stream == extent.stream
    if there and extent.first - 1 <= after.sequence <= extent.last:
        return None, Position(extent.stream, after.sequence)
    gap = Gap(after.sequence, extent.first, datetime.now(UTC))
    return gap, Position(extent.stream, extent.first - 1)


def _news(events: Iterable[FeedEvent], request: FeedRequest, after: int) -> tuple[FeedEvent, ...]:
    """The events that are wanted and were not had; of hints, the newest of each task, and of those
    no more than HINTS_AT_ONCE."""
    wanted = [event for event in events if event.is_wanted(request)]
    newest = {event.task: place for place, event in enumerate(wanted)}
    hints = [
        place
        for place, event in enumerate(wanted)
        if not event.sequence and newest[event.task] == place
    ]
    kept = frozenset(hints[-HINTS_AT_ONCE:])
    return tuple(
        event
        for place, event in enumerate(wanted)
        if (event.sequence > after if event.sequence else place in kept)
    )
