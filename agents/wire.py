"""The thin layer over nats-py: plain callbacks in, joined writes out, one inbox for PubAcks.

nats-py keeps connecting, authentication, TLS, reconnecting and every message that is not ours.
The layer replaces its parser and hands it bytes through its buffer, so it touches private
attributes (`_ps`, `_sid`, `_pending`, `_pending_data_size`, `_max_pending_size`,
`_flush_queue`): nats-py is pinned, and the tests restart a server under this module.

What always holds: `settled` of a store is called exactly once; whatever one turn of the loop
publishes here leaves in one write, in order (but after what nats-py itself sent meanwhile).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import nats.errors
import orjson
from headway.agents.errors import HeadwayError
from headway.agents.parser import ChunkParser, OnMessage
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

STORE_TIMEOUT_S = 5.0
FLUSH_TIMEOUT_S = 2

UNCONFIRMED = 0  # code: the message may or may not have been stored
TOO_LARGE = 413  # code: over the server's max_payload, so never sent
NO_STREAM = 503  # code: no stream takes this subject, or JetStream is not there

Settled = Callable[["StoreError | None"], None]

_CRLF = b"\r\n"
_log = logging.getLogger("headway.agents.wire")


class StoreError(HeadwayError):
    """A stream did not confirm a message; `code` is JetStream's err_code or one of the above."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} (code {code})")
        self.code = code
        self.text = text


class Wire:
    """One connection's messages. Subjects are not checked here: build them with `subjects`."""

    def __init__(self, nc: Client) -> None:
        """Take over the parser of `nc`; give `disconnected` and `reconnected` to its connect."""
        self._nc: Any = nc
        self._routes: dict[bytes, OnMessage] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._nc._ps = ChunkParser(nc, self._routes)
        self._outgoing: list[bytes] = []
        self._stores: dict[str, tuple[Settled, float]] = {}
        self._store_number = 0
        self._store_inbox = ""
        self._store_timer: asyncio.TimerHandle | None = None
        self._on_reconnect: list[Callable[[], None]] = []
        self._on_disconnect: list[Callable[[], None]] = []

    async def start(self) -> None:
        """Open the inbox for PubAcks; once, when `nc` is connected."""
        self._loop = asyncio.get_running_loop()
        self._store_inbox = f"{self.new_inbox()}."
        await self.subscribe(f"{self._store_inbox}*", self._on_stored)

    @property
    def closed(self) -> bool:
        return bool(self._nc.is_closed)

    def new_inbox(self) -> str:
        """A fresh subject that only this connection's user may listen on."""
        return str(self._nc.new_inbox())

    async def subscribe(self, subject: str, on_message: OnMessage, *, queue: str = "") -> int:
        """Call `on_message` for each message from now on; nats-py replays it on reconnect."""
        sid: int = self._nc._sid + 1  # known before the first message can come
        self._routes[b"%d" % sid] = on_message
        self._subscriptions[sid] = await self._nc.subscribe(subject, queue=queue)
        return sid

    async def unsubscribe(self, sid: int) -> None:
        """End a subscription; what the server had sent before still reaches its callback."""
        subscription = self._subscriptions.pop(sid)
        try:
            if not self._nc.is_closed:
                self.hand_over()
                await subscription.unsubscribe()
            await self.flush()
        except (TimeoutError, OSError, nats.errors.Error):
            _log.debug("the server did not confirm the end of a subscription")
        finally:
            self._routes.pop(b"%d" % sid, None)

    def publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        """Send at the end of this turn of the loop; while disconnected, after the reconnect.

        Raises ConnectionError when closed, ValueError over the server's `max_payload`. Past
        the buffer of a long disconnect messages are dropped: core NATS promises no more.
        """
        if self._nc.is_closed:
            raise ConnectionError("the connection to NATS is closed")
        if len(payload) > self._nc.max_payload:
            raise ValueError(
                f"{len(payload)} bytes are more than the server's max_payload of "
                f"{self._nc.max_payload}; send a reference instead"
            )
        self._send(f"PUB {subject} {reply} {len(payload)}\r\n".encode(), payload)

    def store(
        self, subject: str, payload: bytes, settled: Settled, *, headers: bytes = b""
    ) -> None:
        """Publish to a stream; `settled` gets None on the PubAck, else the error, exactly once.

        `headers` is a raw block, from `NATS/1.0` to the empty line. Raises ConnectionError
        when closed.
        """
        nc = self._nc
        if nc.is_closed:
            raise ConnectionError("the connection to NATS is closed")
        size = len(headers) + len(payload)
        if size > nc.max_payload:
            error = StoreError(TOO_LARGE, f"{size} bytes exceed max_payload {nc.max_payload}")
            self._loop.call_soon(settled, error)
            return
        if not nc.is_connected:
            error = StoreError(UNCONFIRMED, "unconfirmed: not connected")
            self._loop.call_soon(settled, error)
            return
        self._store_number = number = self._store_number + 1
        token = str(number)
        self._stores[token] = settled, self._loop.time() + STORE_TIMEOUT_S
        if self._store_timer is None:
            self._store_timer = self._loop.call_later(STORE_TIMEOUT_S, self._expire_stores)
        reply = self._store_inbox + token
        if headers:
            line = f"HPUB {subject} {reply} {len(headers)} {size}\r\n".encode()
            self._send(line + headers, payload)
        else:
            self._send(f"PUB {subject} {reply} {size}\r\n".encode(), payload)

    async def store_all(self, messages: Sequence[tuple[str, bytes]]) -> list[StoreError | None]:
        """Store all (subject, payload), pipelined; one outcome each, in order.

        A server answers a burst only when it has stored all of it: with every message flushed
        that may be 5,000 a second, so give it no more than a few thousand at a time.
        """
        outcomes: list[StoreError | None] = [None] * len(messages)
        if not messages:
            return outcomes
        done: asyncio.Future[None] = self._loop.create_future()
        left = len(messages)

        def settle(index: int, outcome: StoreError | None) -> None:
            nonlocal left
            left -= 1
            outcomes[index] = outcome
            if left == 0 and not done.done():
                done.set_result(None)

        for index, (subject, payload) in enumerate(messages):
            self.store(subject, payload, partial(settle, index))
        await done
        return outcomes

    async def request(self, subject: str, payload: bytes, timeout: float) -> Msg:
        """nats-py's request: NoRespondersError, or TimeoutError after `timeout` seconds."""
        answer: Msg = await self._nc.request(subject, payload, timeout=timeout)
        return answer

    def on_reconnect(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after each reconnect; returns what takes it off again."""
        self._on_reconnect.append(callback)
        return partial(self._on_reconnect.remove, callback)

    def on_disconnect(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after each loss of the connection; returns what takes it off again."""
        self._on_disconnect.append(callback)
        return partial(self._on_disconnect.remove, callback)

    async def flush(self) -> None:
        """Wait until the server has seen all that was published; not while disconnected.

        Raises TimeoutError after FLUSH_TIMEOUT_S.
        """
        self.hand_over()
        if not self._nc.is_connected:
            return
        written: asyncio.Future[None] = self._loop.create_future()
        await self._nc._flush_queue.put(written)  # nats-py's ping overtakes what it has not written
        await asyncio.wait_for(written, FLUSH_TIMEOUT_S)
        await self._nc.flush(FLUSH_TIMEOUT_S)

    def hand_over(self) -> None:
        """Give what was published in this turn to nats-py now, as before a close."""
        if not self._outgoing:
            return
        nc = self._nc
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        connected = nc.is_connected
        if not connected and nc._pending_data_size + len(data) > nc._max_pending_size:
            _log.warning("the buffer of a long disconnect is full: %d bytes dropped", len(data))
            return
        nc._pending.append(data)
        nc._pending_data_size += len(data)
        if connected and nc._flush_queue.empty():
            nc._flush_queue.put_nowait(self._loop.create_future())

    def discard(self) -> None:
        """Drop what waits for a server that is away, as before a close."""
        self._nc._pending.clear()
        self._nc._pending_data_size = 0

    def give_up_stores(self, why: str) -> None:
        """Settle every store that waits for its PubAck as unconfirmed."""
        stores, self._stores = self._stores, {}
        for settled, _ in stores.values():
            _settle(settled, StoreError(UNCONFIRMED, f"unconfirmed: {why}"))

    async def disconnected(self) -> None:
        """For nats-py's connect: the connection is lost, so no store will be confirmed."""
        self.give_up_stores("disconnected")
        _call_all(self._on_disconnect)

    async def reconnected(self) -> None:
        """For nats-py's connect: the connection is there again, subscriptions replayed."""
        _call_all(self._on_reconnect)

    def _send(self, head: bytes, payload: bytes) -> None:
        if not self._outgoing:
            self._loop.call_soon(self.hand_over)
        self._outgoing += (head, payload, _CRLF)

    def _on_stored(self, subject: str, _reply: str, _headers: bytes, payload: bytes) -> None:
        entry = self._stores.pop(subject[len(self._store_inbox) :], None)
        if entry is not None:
            stored = payload and b'"error"' not in payload
            _settle(entry[0], None if stored else _refusal(payload))

    def _expire_stores(self) -> None:
        self._store_timer = None
        now = self._loop.time()
        while self._stores:
            token, (settled, deadline) = next(iter(self._stores.items()))
            if deadline > now:
                self._store_timer = self._loop.call_at(deadline, self._expire_stores)
                return
            del self._stores[token]
            _settle(settled, StoreError(UNCONFIRMED, f"unconfirmed after {STORE_TIMEOUT_S} s"))


def _refusal(payload: bytes) -> StoreError:
    """What an answer that is no PubAck means; no responders answer with an empty body."""
    if not payload:
        return StoreError(NO_STREAM, "no stream takes this subject, or JetStream is away")
    try:
        error = orjson.loads(payload)["error"]
        return StoreError(int(error.get("err_code", error["code"])), error["description"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return StoreError(UNCONFIRMED, "unconfirmed: the answer is not a PubAck")


def _settle(settled: Settled, outcome: StoreError | None) -> None:
    try:
        settled(outcome)
    except Exception:
        _log.exception("the callback of a store failed")


def _call_all(callbacks: Sequence[Callable[[], None]]) -> None:
    for callback in tuple(callbacks):
        try:
            callback()
        except Exception:
            _log.exception("a connection listener failed")
