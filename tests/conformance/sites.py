"""Where scenarios of the bus take place: at a real nats-server, or at the simulated one.

A scenario is a coroutine over a site; `both` makes a test of it for each kind. It may wait by
asyncio alone, for at the simulated server no time passes but what it waits for.
"""

from __future__ import annotations

import asyncio
import inspect
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pytest
from harness.services import nats_in
from headway.agents.connection import Connection, connect
from simulation.broker import Broker
from simulation.client import SimulatedClient, connected
from simulation.faults import Chance, Faults
from simulation.loop import Loop, Pace, Timeline

WITHIN_S = 5.0  # for what comes by itself
POLL_S = 0.005


class Site(Protocol):
    """A server and the connections to it."""

    async def connect(self) -> Connection: ...
    async def kill(self) -> None: ...
    async def start(self) -> None: ...
    async def wipe(self) -> None: ...


Scenario = Callable[[Site], Awaitable[None]]


class RealSite:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server = nats_in(directory)
        self._connections: list[Connection] = []

    def run(self, scenario: Scenario) -> None:
        asyncio.run(self._run(scenario))

    async def connect(self) -> Connection:
        connection = await connect(self._server.url, name="conformance")
        self._connections.append(connection)
        return connection

    async def kill(self) -> None:
        await self._server.kill()

    async def start(self) -> None:
        await self._server.start()

    async def wipe(self) -> None:
        """Delete the store of a server that was killed."""
        await self._server.wipe_store()

    async def _run(self, scenario: Scenario) -> None:
        await self._server.start()
        try:
            await scenario(self)
        finally:
            for connection in self._connections:
                await connection.close()
            await self._server.kill()
            shutil.rmtree(self._directory)


class SimulatedSite:
    def __init__(self) -> None:
        self._timeline = Timeline()
        self._chance = Chance(1, Faults.none())
        self._broker = Broker(self._timeline, self._chance, _untold)
        self._wrong: list[dict[str, Any]] = []
        self._connections = 0

    def run(self, scenario: Scenario) -> None:
        loop = Loop(
            self._timeline,
            Pace(Random(1)),
            lambda: self._timeline.now,
            lambda when: when,
            lambda _loop: None,
            self._wrong.append,
        )
        running = loop.create_task(_within(loop, scenario(self)))
        while not running.done():
            assert self._timeline.step(), "the scenario waits for nothing that will happen"
        loop.kill()
        running.result()
        assert not self._wrong

    async def connect(self) -> Connection:
        self._connections += 1
        place = f"client{self._connections}"
        client = SimulatedClient(self._broker, self._timeline, self._chance, place, "_INBOX")
        return await connected(client, wait=False, timeout=5.0)

    async def kill(self) -> None:
        self._broker.kill(Random(1))

    async def start(self) -> None:
        self._broker.start()

    async def wipe(self) -> None:
        """Delete the store of a server that was killed."""
        self._broker.wipe()


async def _within(_loop: Loop, scenario: Awaitable[None]) -> None:
    await scenario


def _untold(*_words: object) -> None:
    return


def both(scenario: Scenario) -> Callable[..., None]:
    """A test of a scenario, at each kind of site."""

    @pytest.mark.parametrize("kind", ["nats-server", "simulated"])
    def test(kind: str, tmp_path: Path) -> None:
        site = RealSite(tmp_path / "nats") if kind == "nats-server" else SimulatedSite()
        site.run(scenario)

    test.__doc__ = scenario.__doc__
    return test


async def soon(condition: Callable[[], Any], what: str = "the condition") -> None:
    """Wait until it is true, sync or async, by the time of the loop."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WITHIN_S
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return
        assert loop.time() < deadline, f"{what} did not come true within {WITHIN_S:g} s"
        await asyncio.sleep(POLL_S)
