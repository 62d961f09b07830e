"""A whole system to be harmed: both servers, and every process behind proxies of its own.

Roles are played by processes that come and go: `coordinator-1`, `crew-2`, `wreck`. Links are called
by the role and the server: `crew-2/nats`, `coordinator-1/postgres`, `submitter/nats`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
from chaos.crew import PORT_VARIABLE, sagas
from chaos.downstream import Entry, read_log
from chaos.load import Order
from harness import clock
from harness.actors import Actor, Actors
from harness.clock import Clock
from harness.proxy import Proxy
from harness.services import RunningNats, RunningPostgres
from headway.agents import Client
from headway.coordinator.ports import free_port

HERE = Path(__file__).parent
COORDINATORS = ("coordinator-1", "coordinator-2")
CREWS = ("crew-1", "crew-2", "crew-3")
WRECK = "wreck"
SUBMITTER = "submitter/nats"
CLIENT_PATIENCE_S = 90.0  # an accepted task is what the promise is about, so submitting insists
UP_WITHIN_S = 30.0


class Stage:
    """Started by `staged`. `pids` tells which process played a role, ever."""

    def __init__(
        self, nats: RunningNats, postgres: RunningPostgres, folder: Path, rng: random.Random
    ) -> None:
        self.nats = nats
        self.postgres = postgres
        self.folder = folder
        self.log_path = folder / "downstream.jsonl"
        self.links: dict[str, Proxy] = {}
        self.clocks: dict[str, Clock] = {}
        self.roles: dict[str, Actor] = {}
        self.disks: dict[str, Path] = {}  # roots of the servers' file systems
        self.ballast: list[Path] = []  # what fills a disk
        self.accepted: dict[UUID, Order] = {}
        self.extra: dict[UUID, Order] = {}  # tasks that a fault itself handed in
        self.client: Client
        self._actors = Actors(folder)
        self._frozen: set[str] = set()
        self._port = free_port()
        self._rng = rng
        self._rebuilding: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Everything there is; returns when tasks are taken and done."""
        self.postgres_url = self.postgres.server.url_of(await self.postgres.create_database())
        await self._actors.start(
            "downstream_process",
            *("--log", str(self.log_path), "--port", str(self._port)),
            folder=HERE,
        )
        submitter = await self._link(SUBMITTER)
        await asyncio.gather(*(self.play(role) for role in (*COORDINATORS, *CREWS)))
        self.client = await Client.connect(
            submitter.url(self.nats.url), name="submitter", timeout=CLIENT_PATIENCE_S
        )
        for saga in sagas():
            await self.client.register(saga.define())
        ready = await self.client.submit("trip", {"number": -1, "words": {}})
        await self.client.result(ready.task, timeout=UP_WITHIN_S)

    async def stop(self) -> None:
        await self.let_wreck_rest()
        with suppress(AttributeError):
            await self.client.close()
        await self._actors.end()
        for link in self.links.values():
            await link.stop()

    async def play(self, role: str) -> Actor:
        """Start a process for a role."""
        nats = await self._link(f"{role}/nats")
        environment = {"HEADWAY_NATS_URL": nats.url(self.nats.url), PORT_VARIABLE: str(self._port)}
        if role not in self.clocks:
            self.clocks[role] = Clock(self.folder / f"{role}.clock")
        environment[clock.VARIABLE] = str(self.clocks[role].path)
        if role in COORDINATORS:
            postgres = await self._link(f"{role}/postgres")
            environment["HEADWAY_POSTGRES_URL"] = postgres.url(self.postgres_url)
            actor = await self._actors.start("coordinator_process", **environment)
        else:
            arguments = ["--wreck"] if role == WRECK else []
            actor = await self._actors.start("crew_process", *arguments, folder=HERE, **environment)
        self.roles[role] = actor
        return actor

    async def kill(self, *roles: str) -> list[int]:
        """End these processes with SIGKILL; their pids."""
        actors = [self.roles[role] for role in roles]
        await asyncio.gather(*(actor.kill() for actor in actors))
        return [actor.pid for actor in actors]

    def freeze(self, role: str) -> int:
        self._frozen.add(role)
        self.roles[role].freeze()
        return self.roles[role].pid

    def thaw(self, role: str) -> None:
        self._frozen.discard(role)
        if self.roles[role].running:
            self.roles[role].thaw()

    def let_wreck_work(self) -> None:
        """From now on the agent that crashes is started again whenever it ended."""

        async def again() -> None:
            while True:
                actor = await self.play(WRECK)
                await actor.ended(within_s=3_600)

        self._rebuilding = asyncio.create_task(again())

    async def let_wreck_rest(self) -> None:
        if self._rebuilding is not None:
            self._rebuilding.cancel()
            await asyncio.gather(self._rebuilding, return_exceptions=True)
            self._rebuilding = None
            await self.roles[WRECK].kill()

    def links_of(self, *endings: str) -> list[Proxy]:
        """The links whose names end so: `/nats`, `/postgres`, `crew-1/nats`."""
        return [link for name, link in self.links.items() if name.endswith(endings)]

    async def heal(self) -> None:
        """Undo all that faults may have left; may be repeated."""
        for path in self.ballast:
            path.unlink(missing_ok=True)
        for link in self.links.values():
            link.heal()
        for role in list(self._frozen):
            self.thaw(role)
        for each in self.clocks.values():
            each.set_ahead(0.0)
        for server in (self.nats, self.postgres):
            if server.running:
                server.thaw()
            else:
                await server.start()
        for role in (*COORDINATORS, *CREWS):
            if not self.roles[role].running:
                await self.play(role)

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """The rows of an SQL statement, asked past all proxies."""
        connection = await asyncpg.connect(self.postgres_url)
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await connection.close()

    def log(self) -> list[Entry]:
        """What the service saw so far."""
        return read_log(self.log_path)

    async def _link(self, name: str) -> Proxy:
        if name not in self.links:
            server = self.nats.url if name.endswith("/nats") else self.postgres.url
            port = int(server.rpartition(":")[2].partition("/")[0])
            link = self.links[name] = Proxy(port, self._rng)
            await link.start()
        return self.links[name]


@asynccontextmanager
async def staged(
    nats: RunningNats, postgres: RunningPostgres, folder: Path, rng: random.Random
) -> AsyncIterator[Stage]:
    """A stage on these servers, which are running."""
    stage = Stage(nats, postgres, folder, rng)
    try:
        await stage.start()
        yield stage
    finally:
        await stage.stop()
