"""Everything in one process tree: PostgreSQL, nats-server and coordinators, under supervision.

    async with Embedded(Path(".headway")) as embedded:
        client = await Client.connect(embedded.nats_url)

Always holds:
- One process at a time uses a data directory; a second one is told who does.
- Servers listen on 127.0.0.1 only, want generated passwords, and never run as root.
- Whoever dies is started again; when this process dies, however it dies, everything else does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from headway.coordinator import nats_server, postgres_server
from headway.coordinator.connections import Connections
from headway.coordinator.coordinator_child import COMMAND, CoordinatorChild
from headway.coordinator.datadir import DataDirectory, existing_data_directory
from headway.coordinator.doorkeeper import Doorkeeper, admitted
from headway.coordinator.http_socket import url_of
from headway.coordinator.leftovers import end_leftovers
from headway.coordinator.nats_server import NatsServer
from headway.coordinator.permissions import ANY_AGENT, User, of_agent, of_people
from headway.coordinator.postgres_server import PostgresServer
from headway.coordinator.serveruser import server_user
from headway.coordinator.supervisor import Server, Supervised

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Embedded:
    """The servers and coordinators of one data directory; an async context manager.

    `processes` maps "postgres", "nats", "coordinator-1"… to what runs, in the order of their
    start; each has `pid`, `running` and `restarts`.
    """

    def __init__(
        self,
        data: Path,
        *,
        coordinators: int = 1,
        coordinator_command: Sequence[str] = COMMAND,
        http: str = "",
    ) -> None:
        """`http`: host:port to serve HTTP at; else a free port on loopback, kept from then on."""
        self.processes: dict[str, Supervised] = {}
        self._path = data
        self._coordinators = coordinators
        self._command = tuple(coordinator_command)
        self._http = http
        self._listening: socket.socket | None = None
        self._data: DataDirectory | None = None
        self._connections: Connections | None = None
        self._doorkeeping: asyncio.Task[None] | None = None

    @property
    def nats_url(self) -> str:
        """For people and programs."""
        return self.connections.nats_url

    @property
    def agents_nats_url(self) -> str:
        """For agents without credentials of their own."""
        return self.connections.agents_nats_url

    @property
    def coordinators_nats_url(self) -> str:
        return self.connections.coordinators_nats_url

    @property
    def postgres_url(self) -> str:
        return self.connections.postgres_url

    @property
    def connections(self) -> Connections:
        if self._connections is None:
            raise RuntimeError("start the embedded servers before asking for their URLs")
        return self._connections

    async def start(self) -> Connections:
        """Start everything and return when all of it is ready; from the main thread only.

        Raises DataDirectoryError, CannotListen or ServerError, with nothing left running.
        """
        self._data = DataDirectory(self._path)
        try:
            await _end_leftovers(self._data)
            users = _users(self._data)
            postgres, nats = _servers(self._data, users)
            self._listening = listening = self._data.listen(self._http)
            coordinators, people, agents = map(nats.url_of, users)
            self._connections = Connections(
                people,
                postgres.url,
                os.getpid(),
                agents,
                coordinators,
                url_of(listening, tls=bool(os.environ.get("HEADWAY_HTTP_CERT"))),
                self._data.secrets().console_token,
            )
            servers: list[Server] = [postgres, nats, *self._coordinator_children(self._data)]
            for server in servers:
                supervised = self.processes[server.name] = Supervised(server)
                await supervised.start()
            doorkeeper = Doorkeeper(
                self._data, nats, self.processes[nats.name], users, postgres.url
            )
            self._doorkeeping = asyncio.create_task(doorkeeper.run())
            self._data.publish(self._connections)
        except BaseException:
            await self.stop()
            raise
        return self._connections

    async def stop(self) -> None:
        """End everything in the reverse order of its start; may be repeated."""
        if self._doorkeeping is not None:
            self._doorkeeping.cancel()
            await asyncio.wait({self._doorkeeping})
            self._doorkeeping = None
        for supervised in reversed(self.processes.values()):
            await supervised.stop()
        self.processes.clear()
        self._connections = None
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        if self._data is not None:
            self._data.release()
            self._data = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def _coordinator_children(self, data: DataDirectory) -> list[Server]:
        names = [f"coordinator-{number}" for number in range(1, self._coordinators + 1)]
        return [
            CoordinatorChild(
                name,
                data.log(name),
                command=self._command,
                nats_url=self.coordinators_nats_url,
                postgres_url=self.postgres_url,
                listening=self._listening,
                console_token=self.connections.console_token,
            )
            for name in names
        ]


async def serve(embedded: Embedded, announce: Callable[[Connections], None]) -> None:
    """Run `embedded` until this process is told to stop; `announce` is called when it is ready.

    SIGTERM, SIGINT and SIGHUP stop everything in order, at any time, unless the process was
    started to ignore them (as by nohup).
    """
    loop = asyncio.get_running_loop()
    told_to_stop = asyncio.Event()
    heeded = [each for each in STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    for stop_signal in heeded:
        loop.add_signal_handler(stop_signal, told_to_stop.set)
    running = asyncio.create_task(_run(embedded, announce))
    stopping = asyncio.create_task(told_to_stop.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        running.cancel()
        await asyncio.wait({running})
        for stop_signal in heeded:
            loop.remove_signal_handler(stop_signal)
    if not running.cancelled():
        running.result()


async def _run(embedded: Embedded, announce: Callable[[Connections], None]) -> None:
    async with embedded:
        announce(embedded.connections)
        await asyncio.Event().wait()


async def reset(data: Path) -> None:
    """Delete all that Headway keeps in `data`: tasks, history, passwords, logs.

    Raises DataDirectoryError when a process uses it, or when it is no data directory of Headway.
    """
    if (directory := existing_data_directory(data)) is None:
        return
    try:
        await _end_leftovers(directory)
        directory.wipe()
    finally:
        directory.release()


async def _end_leftovers(data: DataDirectory) -> None:
    await end_leftovers(nats_server.PROGRAM, data.nats)
    await end_leftovers(postgres_server.PROGRAM, data.postgres)


def _users(data: DataDirectory) -> tuple[User, User, User]:
    """Coordinators, people, and agents without credentials of their own."""
    passwords = data.secrets()
    return (
        User("coordinator", passwords.coordinators_password),
        User("headway", passwords.nats_password, permissions=of_people()),
        User("agents", passwords.agents_password, permissions=of_agent(ANY_AGENT)),
    )


def _servers(data: DataDirectory, users: Sequence[User]) -> tuple[PostgresServer, NatsServer]:
    ports, passwords, user = data.ports(), data.secrets(), server_user()
    postgres = PostgresServer(
        data.postgres,
        data.log(PostgresServer.name),
        port=ports.postgres,
        password=passwords.postgres_password,
        run_as=user,
    )
    nats = NatsServer(
        data.nats,
        data.log(NatsServer.name),
        port=ports.nats,
        monitoring_port=ports.nats_monitoring,
        users=[*users, *admitted(data.grants())],
        run_as=user,
    )
    return postgres, nats
