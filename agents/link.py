"""The thin layer over nats-py: plain callbacks in, joined writes out.

nats-py keeps connecting, authentication, TLS, reconnecting and every message that is not ours.
The layer replaces its parser, and writes to its socket while nothing waits before what it has, else
through its buffer; so it touches private attributes (`_ps`, `_sid`, `_transport`, `_pending`,
`_pending_data_size`, `_max_pending_size`, `_flush_queue`): nats-py is pinned, and the tests restart
a server under this module.

What always holds: whatever one turn of the loop publishes here leaves in one write (or sooner, if
it is handed over), in order, but after what nats-py itself sent meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import nats.errors
from headway.agents.parser import ChunkParser, OnMessage
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

FLUSH_TIMEOUT_S = 2

_CRLF = b"\r\n"
_log = logging.getLogger("headway.agents.link")


class Link:
    """One connection's messages. Subjects are not checked here: build them with `subjects`."""

    def __init__(self, nc: Client) -> None:
        """Take over the parser of `nc`, in the loop that will run it.

        Give `disconnected` and `reconnected` to its `connect`.
        """
        self._nc: Any = nc
        self._loop = asyncio.get_running_loop()
        self._routes: dict[bytes, OnMessage] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._nc._ps = ChunkParser(nc, self._routes)
        self._outgoing: list[bytes] = []
        self._on_reconnect: list[Callable[[], None]] = []
        self._on_disconnect: list[Callable[[], None]] = []

    @property
    def connected(self) -> bool:
        return bool(self._nc.is_connected)

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

    async def unsubscribe(self, sid: int, *, drain: bool = True) -> None:
        """End a subscription; with `drain`, what the server sent before still comes."""
        subscription = self._subscriptions.pop(sid)
        try:
            if not self._nc.is_closed:
                self.hand_over()
                await subscription.unsubscribe()
            if drain:
                await self.flush()
        except (TimeoutError, OSError, nats.errors.Error):
            _log.debug("the server did not confirm the end of a subscription")
        finally:
            self._routes.pop(b"%d" % sid, None)

    def publish(
        self, subject: str, payload: bytes, reply: str = "", *, headers: bytes = b""
    ) -> None:
        """Send at the end of this turn of the loop; while disconnected, after the reconnect.

        `headers` is a raw block, from `NATS/1.0` to the empty line. Raises ConnectionError when
        closed, ValueError over the server's `max_payload`. Past the buffer of a long disconnect
        messages are dropped: core NATS promises no more.
        """
        if self._nc.is_closed:
            raise ConnectionError("the connection to NATS is closed")
        if len(payload) > self._nc.max_payload:
            raise ValueError(
                f"{len(payload)} bytes are more than the server's max_payload of "
                f"{self._nc.max_payload}; send a reference instead"
            )
        if headers:
            sizes = f"{len(headers)} {len(headers) + len(payload)}"
            self._send(f"HPUB {subject} {reply} {sizes}\r\n".encode() + headers, payload)
        else:
            self._send(f"PUB {subject} {reply} {len(payload)}\r\n".encode(), payload)

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
        async with asyncio.timeout(FLUSH_TIMEOUT_S):
            await self._nc._flush_queue.put(written)  # or nats-py's ping overtakes what it has
            await written
        await self._nc.flush(FLUSH_TIMEOUT_S)

    def hand_over(self) -> None:
        """Send what was published in this turn now, as before a close."""
        if not self._outgoing:
            return
        nc = self._nc
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        connected = nc.is_connected
        if connected and _is_written(nc, data):
            return
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

    async def disconnected(self) -> None:
        """For nats-py's connect: the connection is lost."""
        _call_all(self._on_disconnect)

    async def reconnected(self) -> None:
        """For nats-py's connect: the connection is there again, subscriptions replayed."""
        _call_all(self._on_reconnect)

    def _send(self, head: bytes, payload: bytes) -> None:
        if not self._outgoing:
            self._loop.call_soon(self.hand_over)
        self._outgoing += (head, payload, _CRLF)


def _is_written(nc: Any, data: bytes) -> bool:
    """Write to the socket, unless something waits before it or it is gone: nats-py's own way takes
    two more turns of the loop, which is most of a message's time here."""
    transport = nc._transport
    if nc._pending or type(transport) is not TcpTransport:
        return False
    reader, writer = transport._io_reader, transport._io_writer
    if reader is None or reader.at_eof() or writer is None or writer.is_closing():
        return False
    if writer.transport.get_write_buffer_size():
        return False
    try:
        writer.write(data)
    except (OSError, RuntimeError):  # closed, and nats-py does not know yet
        return False
    return True


def _call_all(callbacks: Sequence[Callable[[], None]]) -> None:
    for callback in tuple(callbacks):
        try:
            callback()
        except Exception:
            _log.exception("a connection listener failed")
