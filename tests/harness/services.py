"""Real servers for tests, started by the very code that `headway up` uses.

`RunningNats` and `RunningPostgres` are one server each, which a test may kill, stop and start
again on the same port. A server that cannot be started fails the test; it never skips it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import asyncpg
from harness.rights import AGENTS, OWNER, PEOPLE
from headway.coordinator.logfile import LogFile
from headway.coordinator.nats_server import NatsServer
from headway.coordinator.permissions import User
from headway.coordinator.ports import free_port
from headway.coordinator.postgres_server import MAINTENANCE_DATABASE, PostgresServer
from headway.coordinator.process import Process
from headway.coordinator.serveruser import server_user
from headway.coordinator.supervisor import Server, start_server

PASSWORD = "only-for-tests"
START_WITHIN_S = 60.0
STOP_GRACE_S = 10.0

S = TypeVar("S", bound=Server)


class Running(Generic[S]):
    """A server and its process, if any."""

    def __init__(self, server: S) -> None:
        self.server = server
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.server.name} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    async def start(self) -> None:
        """Start it, on the port and data it always had, and wait until it is ready."""
        assert not self.running, f"{self.server.name} runs already"
        async with asyncio.timeout(START_WITHIN_S):
            self._process = await start_server(self.server)

    async def stop(self) -> None:
        """Stop it in an orderly way and wait until it is gone."""
        if self._process is not None:
            await self._process.stop(STOP_GRACE_S)
            await self.server.end_leftovers()

    async def kill(self) -> None:
        """End it with SIGKILL and wait until it is gone."""
        if self._process is not None:
            await self._process.kill()
            await self.server.end_leftovers()

    async def restart(self) -> None:
        """Stop it in an orderly way and start it again."""
        await self.stop()
        await self.start()

    def freeze(self) -> None:
        """Let it hang, with all its connections open (SIGSTOP), until `thaw`."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


class RunningNats(Running[NatsServer]):
    """A nats-server with JetStream; `url` carries user and password."""

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def monitoring_url(self) -> str:
        return self.server.monitoring_url

    async def wipe_store(self) -> None:
        """Kill it, delete everything JetStream stored, and start it again if it was running."""
        was_running = self.running
        await self.kill()
        shutil.rmtree(self.server.store, ignore_errors=True)
        if was_running:
            await self.start()


class RunningPostgres(Running[PostgresServer]):
    """A PostgreSQL; `url` is an empty database of it, with user and password."""

    _names = itertools.count(1)

    @property
    def url(self) -> str:
        return self.server.url

    async def create_database(self, template: str = "template1") -> str:
        """Make a fresh database, empty or like `template`, and return its name."""
        name = f"test_{next(self._names)}"
        await self._maintain(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    async def drop_database(self, name: str) -> None:
        """Drop it, ending whatever is still connected to it."""
        await self._maintain(f"DROP DATABASE {name} WITH (FORCE)")

    async def _maintain(self, statement: str) -> None:
        connection = await asyncpg.connect(self.server.url_of(MAINTENANCE_DATABASE))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


class Servers(NamedTuple):
    """What the tests of one module share, and a folder for what they write."""

    nats: RunningNats
    postgres_url: str
    folder: Path


def nats_in(directory: Path, users: Sequence[User] = (), extra: str = "") -> RunningNats:
    """A nats-server that keeps its data in `directory`; not started yet. Beside `users` it lets in
    those of `rights`."""
    port = free_port()
    server = NatsServer(
        directory,
        LogFile(directory.with_name(f"{directory.name}.log")),
        port=port,
        monitoring_port=free_port(taken=frozenset({port})),
        users=[OWNER, PEOPLE, AGENTS, *users],
        run_as=server_user(),
        extra=extra,
    )
    return RunningNats(server)


def postgres_in(directory: Path, settings: Mapping[str, str] | None = None) -> RunningPostgres:
    """A PostgreSQL that keeps its data in `directory`; not started yet."""
    server = PostgresServer(
        directory,
        LogFile(directory.with_name(f"{directory.name}.log")),
        port=free_port(),
        password=PASSWORD,
        run_as=server_user(),
        settings=settings,
    )
    return RunningPostgres(server)
