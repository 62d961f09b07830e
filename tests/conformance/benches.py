"""A connection at a site with what scenarios of streams and consumers do by hand."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from conformance.sites import Site, soon
from headway.agents.connection import Connection
from headway.agents.pull import Delivery, delivery
from headway.agents.wire import StoreError
from headway.coordinator.jetstream import JetStreamError, ask

NS = 1_000_000_000
STREAM, CONSUMER = "S", "C"
QUEUE = {"name": STREAM, "subjects": ["s.>"], "retention": "workqueue", "discard": "new"}
WORKER = {"durable_name": CONSUMER, "name": CONSUMER, "ack_policy": "explicit"}
QUIET_S = 0.15  # in which nothing comes that was not to come


class Status(NamedTuple):
    """A message of the server's about a pull, not of the stream."""

    code: str
    headers: dict[str, str]


@dataclass
class Puller:
    """An inbox for pulls, and what came there."""

    bench: Bench
    consumer: str = CONSUMER
    inbox: str = ""
    got: list[Delivery] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)

    async def open(self) -> Puller:
        self.inbox = self.bench.wire.new_inbox()
        self.sid = await self.bench.wire.subscribe(self.inbox, self._on_message)
        return self

    def ask(self, batch: int, expires_s: float = 4.0, **options: Any) -> None:
        """A pull for this many messages."""
        request = {"batch": batch, "expires": round(expires_s * NS), **options}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{self.consumer}"
        self.bench.wire.publish(subject, orjson.dumps(request), self.inbox)

    async def until(self, count: int) -> list[Delivery]:
        """All that came, once it is this many."""
        await soon(lambda: len(self.got) >= count, f"{count} messages ({len(self.got)} came)")
        return self.got

    async def nothing_more(self, seconds: float = QUIET_S) -> None:
        """No further message comes for a while."""
        count = len(self.got)
        await asyncio.sleep(seconds)
        assert len(self.got) == count, self.got[count:]

    async def told(self, code: str) -> Status:
        """A status with this code, once it came."""
        await soon(lambda: any(each.code == code for each in self.statuses), f"status {code}")
        return next(each for each in self.statuses if each.code == code)

    def answer(self, place: int, body: bytes) -> None:
        self.bench.wire.publish(self.got[place].reply, body)

    @property
    def seen(self) -> list[tuple[str, int]]:
        """The last word of each subject, and the how-manieth delivery it was."""
        return [(each.subject.rpartition(".")[2], each.delivered) for each in self.got]

    def _on_message(self, subject: str, reply: str, headers: bytes, body: bytes) -> None:
        if reply.startswith("$JS.ACK."):
            self.got.append(delivery(subject, reply, headers, body))
            return
        first, *lines = headers.decode().split("\r\n")
        named = (line.partition(":") for line in lines if ":" in line)
        told = {name.strip(): value.strip() for name, _, value in named}
        self.statuses.append(Status(first.split(" ")[1] if " " in first else "", told))


class Bench:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.wire = connection.wire

    @staticmethod
    async def at(site: Site, **consumer: Any) -> Bench:
        """With stream and consumer of their usual names; options of the consumer."""
        bench = Bench(await site.connect())
        await bench.stream()
        await bench.consumer(**consumer)
        return bench

    async def js(self, operation: str, request: dict[str, Any] | None = None) -> Any:
        return await ask(self.wire, operation, request)

    async def code(self, operation: str, request: dict[str, Any] | None = None) -> int:
        """The err_code of a request that is refused; 0 if it is not."""
        try:
            await self.js(operation, request)
        except JetStreamError as error:
            return error.code
        return 0

    async def stream(self, **options: Any) -> Any:
        return await self.js(f"STREAM.CREATE.{STREAM}", QUEUE | options)

    async def consumer(self, name: str = CONSUMER, **options: Any) -> Any:
        if "ack_wait_s" in options:
            options["ack_wait"] = round(options.pop("ack_wait_s") * NS)
        config = WORKER | {"name": name, "durable_name": name} | options
        request = {"stream_name": STREAM, "config": config}
        return await self.js(f"CONSUMER.CREATE.{STREAM}.{name}", request)

    async def info(self, consumer: str = CONSUMER) -> Any:
        return await self.js(f"CONSUMER.INFO.{STREAM}.{consumer}")

    async def state(self) -> Any:
        return (await self.js(f"STREAM.INFO.{STREAM}"))["state"]

    async def holds(self, count: int) -> None:
        """The stream comes to hold so many messages: acks are carried out a little later."""

        async def does() -> bool:
            return bool((await self.state())["messages"] == count)

        await soon(does, f"{count} messages in the stream")

    async def outage(self, change: Callable[[], Awaitable[None]]) -> None:
        """Kill the server, or start it again; return when this connection knows."""
        before = self.wire.connected
        await change()
        await soon(lambda: self.wire.connected is not before, "the change of the connection")

    async def store(self, *words: str, body: bytes = b"x") -> list[StoreError | None]:
        """A message on `s.<word>` for each word."""
        return await self.wire.store_all([(f"s.{word}", body) for word in words])

    async def stored(self, *words: str) -> None:
        assert set(await self.store(*words)) == {None}

    async def puller(self, consumer: str = CONSUMER) -> Puller:
        return await Puller(self, consumer).open()

    async def message(self, **which: Any) -> tuple[int, str, bytes, bytes]:
        """A stored message: sequence, subject, headers and body."""
        found = (await self.js(f"STREAM.MSG.GET.{STREAM}", which))["message"]
        parts = [base64.b64decode(found.get(part, "")) for part in ("hdrs", "data")]
        return found["seq"], found["subject"], *parts
