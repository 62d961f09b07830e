"""A listener to the feed over HTTP, as any client of server-sent events is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
from harness.coordination import STOP_S
from headway.coordinator.app import Coordinator
from headway.coordinator.settings import Settings

CONSOLE_TOKEN = "hw_c0_only-for-tests"


@dataclass
class Heard:
    """One event, as the standard has it."""

    id: str = ""
    event: str = "message"
    data: Any = None


@dataclass
class Listener:
    """What came on one connection."""

    response: httpx.Response
    events: list[Heard] = field(default_factory=list)
    last_id: str = ""
    comments: int = 0
    ended: bool = False

    async def take(self) -> None:
        event = Heard()
        async for line in self.response.aiter_lines():
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "":
                    if line:
                        self.comments += 1
                        continue
                    if event.data is not None:
                        self.events.append(event)
                    event = Heard()
                case "id":
                    self.last_id = event.id = value
                case "event":
                    event.event = value
                case "data":
                    event.data = orjson.loads(value)
        self.ended = True

    def kinds(self, task: str = "") -> list[str]:
        return [each.event for each in self.events if not task or each.data.get("task") == task]

    def stored(self) -> list[Heard]:
        return [each for each in self.events if each.id]


@asynccontextmanager
async def listening(
    address: str, *, last_id: str = "", token: str = CONSOLE_TOKEN, **query: Any
) -> AsyncIterator[Listener]:
    """While the block lasts, what the feed says is heard."""
    headers = {"Authorization": f"Bearer {token}"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    async with (
        httpx.AsyncClient(base_url=address, timeout=None) as client,
        client.stream("GET", "/api/feed", headers=headers, params=query) as response,
    ):
        if response.status_code != 200:
            await response.aread()
            response.raise_for_status()
        listener = Listener(response)
        taking = asyncio.create_task(listener.take())
        try:
            yield listener
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)


class Face:
    """One coordinator with its HTTP face."""

    def __init__(self, nats_url: str, postgres_url: str) -> None:
        settings = Settings(
            nats_url=nats_url,
            postgres_url=postgres_url,
            http="127.0.0.1:0",
            console_token=CONSOLE_TOKEN,
        )
        self._stop = asyncio.Event()
        self.coordinator = Coordinator(settings)
        self._running = asyncio.create_task(self.coordinator.run(self._stop))

    @property
    def address(self) -> str:
        return self.coordinator._http.address

    async def ready(self, within_s: float = 20.0) -> None:
        async with asyncio.timeout(within_s):
            while True:
                assert not self._running.done(), self._running
                if self.address and await self._is_ready():
                    return
                await asyncio.sleep(0.05)

    async def leave(self) -> None:
        self._stop.set()
        await asyncio.wait_for(self._running, STOP_S)

    async def _is_ready(self) -> bool:
        async with httpx.AsyncClient(base_url=self.address) as client:
            return (await client.get("/readyz")).status_code == 200


@asynccontextmanager
async def faces(nats_url: str, postgres_url: str, count: int = 1) -> AsyncIterator[list[Face]]:
    """Coordinators that each serve HTTP at an address of their own."""
    started = [Face(nats_url, postgres_url) for _ in range(count)]
    try:
        for face in started:
            await face.ready()
        yield started
    finally:
        await asyncio.gather(*(face.leave() for face in started))
