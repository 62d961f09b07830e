"""A process's connection: what nats-py's client is to our link, over a simulated line.

`Link`, `Wire`, `Pull` and nats-py's micro service run unmodified on it. It reconnects for ever, as
`agents.connection` has nats-py do, and replays subscriptions before what was published meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import nats.errors
from headway.agents.connection import RECONNECT_WAIT_S, Connection
from headway.agents.errors import Unavailable
from headway.agents.wire import Wire
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from simulation.broker import Broker
from simulation.faults import Chance
from simulation.loop import Timeline
from simulation.network import NEVER_S, Line, Message

MAX_PAYLOAD = 1_048_576
PENDING_MAX_BYTES = 32 * 1_048_576
CONNECTING_S = 0.002

OnMessage = Callable[[Msg], Awaitable[None]]


class Nuid:
    """Names of inboxes and services."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0

    def next(self) -> bytes:
        self._count += 1
        return f"{self._prefix}{self._count}".encode()


class Subscription:
    def __init__(self, client: SimulatedClient, sid: int) -> None:
        self._client = client
        self._sid = sid

    async def unsubscribe(self, limit: int = 0) -> None:
        self._client.unsubscribe(self._sid)

    async def drain(self) -> None:
        self._client.unsubscribe(self._sid)


class Writes:
    """nats-py's queue of futures that are done when what was pending is written."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write

    def empty(self) -> bool:
        return True

    def put_nowait(self, written: asyncio.Future[None]) -> None:
        self._write()
        if not written.done():
            written.set_result(None)

    async def put(self, written: asyncio.Future[None]) -> None:
        self.put_nowait(written)


class SimulatedClient:
    """What `Link`, `Wire` and `nats.micro` use of nats-py's client."""

    connected_server_version = "2.15.1"
    connected_url = urlsplit("nats://broker:4222")
    servers = ()

    def __init__(
        self, broker: Broker, timeline: Timeline, chance: Chance, name: str, inbox_prefix: str
    ) -> None:
        self.is_connected = False
        self.is_closed = False
        self.max_payload = MAX_PAYLOAD
        self.line: Line | None = None
        self._broker = broker
        self._timeline = timeline
        self._chance = chance
        self._name = name
        self._inbox_prefix = inbox_prefix
        self._nuid = Nuid(f"{name}x")
        self._loop = asyncio.get_running_loop()
        self._sid = 0
        self._transport = None  # what is handed over goes through the buffer
        self._ps: Any = None  # the link's parser is never used: messages come as they are
        self._subscriptions: dict[int, tuple[str, str]] = {}
        self._callbacks: dict[int, OnMessage] = {}
        self._pending: list[bytes] = []
        self._pending_data_size = 0
        self._max_pending_size = PENDING_MAX_BYTES
        self._flush_queue = Writes(self._write)
        self._pings: list[asyncio.Future[None]] = []
        self._requests: dict[str, asyncio.Future[Msg]] = {}
        self._request_inbox = ""
        self._request_number = 0
        self._dead = False
        self._server_info: dict[str, Any] = {}
        self.routes: dict[bytes, Any] = {}
        self.on_disconnected: Callable[[], Awaitable[None]] = _nothing
        self.on_reconnected: Callable[[], Awaitable[None]] = _nothing

    # What nats-py offers

    def new_inbox(self) -> str:
        return f"{self._inbox_prefix}.{self._nuid.next().decode()}"

    async def subscribe(
        self, subject: str, queue: str = "", cb: OnMessage | None = None, **_options: Any
    ) -> Subscription:
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        self._sid += 1
        self._subscriptions[self._sid] = subject, queue
        if cb is not None:
            self._callbacks[self._sid] = cb
        self._send("SUB", (self._sid, subject, queue))
        return Subscription(self, self._sid)

    def unsubscribe(self, sid: int) -> None:
        if self._subscriptions.pop(sid, None) is not None:
            self._write()
            self._send("UNSUB", sid)

    async def publish(
        self,
        subject: str,
        payload: bytes = b"",
        reply: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        message = Message(subject, reply, _block(headers) if headers else b"", payload)
        if self.is_connected:
            self._write()
            self._send("PUB", message)
        else:
            self._pending.append(_line_of(message))

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,
        old_style: bool = False,
        headers: dict[str, str] | None = None,
    ) -> Msg:
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        if not self._request_inbox:
            self._request_inbox = self.new_inbox()
            await self.subscribe(f"{self._request_inbox}.*", cb=self._on_answer)
        self._request_number += 1
        token = str(self._request_number)
        answered: asyncio.Future[Msg] = self._loop.create_future()
        self._requests[token] = answered
        await self.publish(subject, payload, f"{self._request_inbox}.{token}", headers)
        try:
            answer = await asyncio.wait_for(answered, timeout)
        except TimeoutError:
            raise nats.errors.TimeoutError from None
        finally:
            self._requests.pop(token, None)
        if answer.headers and answer.headers.get("Status") == "503":
            raise nats.errors.NoRespondersError
        return answer

    async def flush(self, timeout: float = 10) -> None:
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        self._write()
        pong: asyncio.Future[None] = self._loop.create_future()
        self._pings.append(pong)
        self._send("PING", None)
        try:
            await asyncio.wait_for(pong, timeout)
        except TimeoutError:
            raise nats.errors.FlushTimeoutError from None

    async def close(self) -> None:
        if self.is_connected:
            self._write()
        self.is_closed, self.is_connected = True, False
        if self.line is not None:
            self.line.close()
        self.line = None

    def jetstream(self, **options: Any) -> JetStreamContext:
        return JetStreamContext(self, **options)  # type: ignore[arg-type]

    # What the world does with it

    def vanish(self) -> None:
        """Its process died: nothing of it has any effect any more."""
        self._dead = True
        self.is_closed, self.is_connected = True, False
        if self.line is not None:
            self.line.cut(0.0, NEVER_S)
            self.line = None

    async def connect(self, *, wait: bool, timeout: float) -> None:
        deadline = self._loop.time() + timeout
        while not self._try():
            if not wait and self._loop.time() > deadline:
                raise Unavailable("no NATS server let us in")
            await asyncio.sleep(RECONNECT_WAIT_S)
        await asyncio.sleep(CONNECTING_S)

    def _try(self) -> bool:
        if self._dead or self.is_closed or not self._broker.up:
            return False
        line = Line(
            self._broker.next_line(),
            self._name,
            self._timeline,
            self._chance,
            self._broker,
            self._arrived,
            self._pong,
            lambda: self._soon(self._on_lost, line),
        )
        self._broker.accept(line)
        self.line, self.is_connected = line, True
        self._server_info = {"server_id": self._broker.identity}
        for sid, (subject, queue) in self._subscriptions.items():
            line.send("SUB", (sid, subject, queue))
        return True

    def _soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        if not self._dead:
            self._loop.call_soon(callback, *arguments)

    def _on_lost(self, line: Line) -> None:
        if self.line is not line or self.is_closed:
            return
        self.line, self.is_connected = None, False
        self._pings = []  # as nats-py does: nobody gets an answer
        self._loop.create_task(self._come_back())

    async def _come_back(self) -> None:
        await self.on_disconnected()
        await asyncio.sleep(RECONNECT_WAIT_S * 0.2)
        while not self._try():
            if self.is_closed:
                return
            await asyncio.sleep(RECONNECT_WAIT_S)
        self._write()
        await self.on_reconnected()

    def _send(self, verb: str, frame: Any) -> None:
        if self.line is not None and self.is_connected:
            self.line.send(verb, frame)

    def _write(self) -> None:
        """Send what the link has handed over."""
        if not self._pending or not self.is_connected:
            return
        pending, self._pending = self._pending, []
        self._pending_data_size = 0
        for message in _messages(b"".join(pending)):
            self._send("PUB", message)

    def _pong(self) -> None:
        self._soon(self._on_pong)

    def _on_pong(self) -> None:
        if self._pings:
            pong = self._pings.pop(0)
            if not pong.done():
                pong.set_result(None)

    def _arrived(self, sid: int, message: Message) -> None:
        self._soon(self._on_message, sid, message)

    def _on_message(self, sid: int, message: Message) -> None:
        if self.is_closed or sid not in self._subscriptions:
            return
        route = self.routes.get(b"%d" % sid)
        if route is not None:
            route(message.subject, message.reply, message.headers, message.body)
            return
        callback = self._callbacks.get(sid)
        if callback is not None:
            headers = _parsed(message.headers) if message.headers else None
            msg = Msg(self, message.subject, message.reply, message.body, headers)  # type: ignore[arg-type]
            self._loop.create_task(callback(msg))  # type: ignore[arg-type]

    async def _on_answer(self, msg: Msg) -> None:
        answered = self._requests.get(msg.subject.rpartition(".")[2])
        if answered is not None and not answered.done():
            answered.set_result(msg)


async def connected(client: SimulatedClient, *, wait: bool, timeout: float) -> Connection:
    """The link over this client, once it is connected."""
    wire = Wire(client)  # type: ignore[arg-type]
    client.routes = wire._routes
    client.on_disconnected = wire.disconnected
    client.on_reconnected = wire.reconnected
    await client.connect(wait=wait, timeout=timeout)
    await wire.start()
    return Connection(client, wire)  # type: ignore[arg-type]


async def _nothing() -> None:
    return


def _line_of(message: Message) -> bytes:
    head, body = message.headers, message.body
    if head:
        size = len(head) + len(body)
        words = f"HPUB {message.subject} {message.reply} {len(head)} {size}\r\n"
    else:
        words = f"PUB {message.subject} {message.reply} {len(body)}\r\n"
    return words.encode() + head + body + b"\r\n"


def _messages(data: bytes) -> list[Message]:
    """What the link wrote, message by message."""
    found, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        words = data[at:end].decode().split(" ")
        size = int(words[-1])
        start, after = end + 2, end + 2 + size
        head = int(words[-2]) if words[0] == "HPUB" else 0
        found.append(
            Message(words[1], words[2], data[start : start + head], data[start + head : after])
        )
        at = after + 2
    return found


def _block(headers: dict[str, str]) -> bytes:
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def _parsed(block: bytes) -> dict[str, str]:
    first, *lines = block.decode().split("\r\n")
    found: dict[str, str] = {}
    words = first.split(" ", 2)
    if len(words) > 1:
        found["Status"] = words[1]
    for line in lines:
        key, colon, value = line.partition(":")
        if colon:
            found[key.strip()] = value.strip()
    return found
