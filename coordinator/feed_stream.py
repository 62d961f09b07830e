"""Reading HW_FEED: what is stored from a sequence on, and what comes.

Always holds: stored news are handed on in their order and each once; where one is missed, because
the connection broke or a consumer was lost, it is read again from there.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson
from headway.agents import subjects
from headway.agents.pull import Delivery, delivery
from headway.agents.wire import Wire
from headway.coordinator.errors import BusUnavailable, CoordinatorError
from headway.coordinator.feed_ring import FeedEvent, Position, Ring
from headway.coordinator.jetstream import JetStreamError, ask
from headway.coordinator.streams import HINTS

HEARTBEAT_S = 1.0
SILENT_S = 3.0  # after which the consumer counts as lost
LAPSE_S = 30.0  # after which JetStream forgets a consumer that nobody reads from
TRY_AGAIN_S = 0.5
PAGE = 256  # stored events that are read at once
PAGE_WITHIN_S = 5.0

_NANOSECONDS = 1_000_000_000
_LOG = logging.getLogger(__name__)


class Extent(NamedTuple):
    """What the stream holds: from its first sequence to its last (`first` is one more than `last`
    if it is empty)."""

    stream: str
    first: int
    last: int


async def extent_of(wire: Wire) -> Extent:
    """BusUnavailable or JetStreamError if it cannot be had."""
    info = await ask(wire, f"STREAM.INFO.{subjects.FEED_STREAM}")
    stream = hashlib.sha256(info["created"].encode()).hexdigest()[:8]
    first, last = info["state"]["first_seq"], info["state"]["last_seq"]
    return Extent(stream, max(first, 1) if info["state"]["messages"] else last + 1, last)


class LiveFeed:
    """What comes, from now on, into a ring that all listeners share."""

    def __init__(self, wire: Wire, news: Callable[[], None]) -> None:
        """`news` is called after each change of the ring."""
        self._wire = wire
        self._news = news
        self.ring: Ring | None = None  # None until the stream was reached
        self._expected = 0  # the consumer's next sequence
        self._consumer = ""
        self._heard_at = 0.0
        self._broken = asyncio.Event()

    async def run(self) -> None:
        """Read until cancelled; whatever is lost is made anew."""
        self._loop = asyncio.get_running_loop()
        inbox = self._wire.new_inbox()
        forget = self._wire.on_reconnect(self._broken.set)
        sids = [await self._wire.subscribe(inbox, self._on_stored)]
        for kind in HINTS:
            hints = subjects.feed_subject("*", "*", kind)
            sids.append(await self._wire.subscribe(hints, self._on_hint))
        try:
            while True:
                try:
                    await self._read(inbox)
                except CoordinatorError as error:
                    _LOG.info("the feed cannot be read at the moment: %s", error)
                    await asyncio.sleep(TRY_AGAIN_S)
                except Exception:
                    _LOG.exception("reading the feed failed; trying again")
                    await asyncio.sleep(TRY_AGAIN_S)
        finally:
            forget()
            for sid in sids:
                await self._wire.unsubscribe(sid, drain=False)
            await _forget(self._wire, self._consumer)

    async def _read(self, inbox: str) -> None:
        """By one consumer, as long as it is good."""
        extent = await extent_of(self._wire)
        if self.ring is None or self.ring.position.stream != extent.stream:
            self.ring = Ring(Position(extent.stream, extent.last))
            self._news()
        await _forget(self._wire, self._consumer)
        self._broken.clear()
        self._expected, self._heard_at = 1, self._loop.time()
        self._consumer = _name()  # known before the first message can come
        heartbeat = round(HEARTBEAT_S * _NANOSECONDS)
        config = {"deliver_subject": inbox, "idle_heartbeat": heartbeat}
        await _create(self._wire, self._consumer, self.ring.position.sequence + 1, config)
        while not self._broken.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._broken.wait()
            if self._loop.time() - self._heard_at > SILENT_S:
                break

    def _on_stored(self, subject: str, reply: str, headers: bytes, body: bytes) -> None:
        self._heard_at = self._loop.time()
        message = _message(subject, reply, body, self._consumer)
        if message is None or self.ring is None:
            if _delivered(headers) >= self._expected:
                self._broken.set()  # the last one was missed
            return
        if message.consumed != self._expected:
            self._broken.set()  # one was missed
            return
        self._expected += 1
        event = FeedEvent.read(subject, message.sequence, body)
        if event is not None:
            self.ring.append(event)
            self._news()

    def _on_hint(self, subject: str, _reply: str, _headers: bytes, body: bytes) -> None:
        event = FeedEvent.read(subject, 0, body)
        if event is not None and self.ring is not None:
            self.ring.append(event)
            self._news()


async def stored(
    wire: Wire, after: int, filters: Sequence[str]
) -> AsyncGenerator[Sequence[FeedEvent]]:
    """All that the stream holds after a sequence, on these subjects, a page at a time; the next is
    read when it is asked for. BusUnavailable or JetStreamError if it breaks off."""
    inbox = wire.new_inbox()
    came: asyncio.Queue[tuple[str, str, bytes, bytes]] = asyncio.Queue()
    sid = await wire.subscribe(inbox, lambda *message: came.put_nowait(message))
    consumer = _name()
    try:
        await _create(wire, consumer, after + 1, {"filter_subjects": list(filters)})
        while True:
            page, left = await _page(wire, consumer, inbox, came)
            if page:
                yield page
            if not left:
                return
    finally:
        await wire.unsubscribe(sid, drain=False)
        await _forget(wire, consumer)


async def _page(
    wire: Wire, consumer: str, inbox: str, came: asyncio.Queue[tuple[str, str, bytes, bytes]]
) -> tuple[list[FeedEvent], bool]:
    """The next events, and whether there are more."""
    request = {"batch": PAGE, "no_wait": True}
    wire.publish(
        f"$JS.API.CONSUMER.MSG.NEXT.{subjects.FEED_STREAM}.{consumer}",
        orjson.dumps(request),
        inbox,
    )
    page: list[FeedEvent] = []
    try:
        async with asyncio.timeout(PAGE_WITHIN_S):
            while len(page) < PAGE:
                subject, reply, headers, body = await came.get()
                if headers.startswith(b"NATS/1.0 4"):  # 404 or 408: that was all
                    return page, False
                message = _message(subject, reply, body, consumer)
                if message is None:
                    if headers.startswith(b"NATS/1.0 5"):
                        raise BusUnavailable("the consumer of the feed is gone")
                    continue
                event = FeedEvent.read(subject, message.sequence, body)
                if event is not None:
                    page.append(event)
                if not message.pending:
                    return page, False
    except TimeoutError as error:
        raise BusUnavailable("JetStream does not hand out the feed") from error
    return page, True


class _Message(NamedTuple):
    sequence: int
    consumed: int  # the consumer's own sequence
    pending: int


def _message(subject: str, reply: str, body: bytes, consumer: str) -> _Message | None:
    """What an ack subject tells; None if this is no message of that consumer."""
    if not reply.startswith("$JS.ACK.") or not subject.startswith(f"{subjects.PREFIX}.feed."):
        return None
    words = reply.split(".")
    at = 2 if len(words) == 9 else 4
    if words[at : at + 2] != [subjects.FEED_STREAM, consumer]:
        return None
    found: Delivery = delivery(subject, reply, b"", body)
    return _Message(found.sequence, int(words[at + 4]), int(words[at + 6]))


def _delivered(headers: bytes) -> int:
    """How many messages a consumer has sent, by its heartbeat; 0 if this is none."""
    _, found, rest = headers.partition(b"Nats-Last-Consumer:")
    value = rest.partition(b"\r\n")[0].strip()
    return int(value) if found and value.isdigit() else 0


def _name() -> str:
    return f"feed-{secrets.token_hex(8)}"


async def _create(wire: Wire, name: str, first: int, config: dict[str, Any]) -> None:
    """A consumer of our own, which JetStream forgets when nobody reads."""
    request = {
        "stream_name": subjects.FEED_STREAM,
        "config": {
            "name": name,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": first,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": round(LAPSE_S * _NANOSECONDS),
            **config,
        },
    }
    await ask(wire, f"CONSUMER.CREATE.{subjects.FEED_STREAM}.{name}", request)


async def _forget(wire: Wire, consumer: str) -> None:
    if consumer and wire.connected:
        with suppress(JetStreamError, BusUnavailable):  # it lapses by itself
            await ask(wire, f"CONSUMER.DELETE.{subjects.FEED_STREAM}.{consumer}")
