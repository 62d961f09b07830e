"""One PostgreSQL, on loopback TCP only, with a password, in a directory of its own.

There is no unix socket: no trusted local access, and no limit on the length of paths.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path

import asyncpg
from headway.coordinator.binaries import postgres_programs
from headway.coordinator.leftovers import end_leftovers, server_identity
from headway.coordinator.logfile import LogFile
from headway.coordinator.postgres_files import (
    ENVIRONMENT,
    check_version,
    data_option,
    drop_misleading_pid,
    make_files,
)
from headway.coordinator.process import Launch, ServerError
from headway.coordinator.serveruser import ServerUser

PROGRAM = "postgres"
USER = "headway"
DATABASE = "headway"
MAINTENANCE_DATABASE = "postgres"
CONNECT_TIMEOUT_S = 2.0
READY_POLL_S = 0.02


class PostgresServer:
    """How one PostgreSQL is made, started and found ready; holds no process."""

    name = "postgres"

    def __init__(
        self,
        directory: Path,
        log: LogFile,
        *,
        port: int,
        password: str,
        run_as: ServerUser | None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self._directory = directory
        self._port = port
        self._password = password
        self._run_as = run_as
        self._settings = settings or {}

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self._port}/{database}"

    async def end_leftovers(self) -> None:
        """End every postgres that serves this directory, whoever started it."""
        await end_leftovers(PROGRAM, self._directory)

    async def prepare(self) -> None:
        """Make the data directory if need be; may be repeated, with no server in it."""
        if not self._directory.exists():
            await make_files(
                self._directory,
                self.log,
                user=USER,
                password=self._password,
                run_as=self._run_as,
            )
        check_version(self._directory)
        drop_misleading_pid(self._directory)

    def launch(self) -> Launch:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            "cluster_name": server_identity(self._directory),  # in every worker's command line
            **self._settings,
        }
        return Launch(
            argv=(
                str(postgres_programs(self._run_as) / PROGRAM),
                *data_option(self._directory, self._run_as),
                *(part for item in settings.items() for part in ("-c", "=".join(item))),
            ),
            env=ENVIRONMENT,
            cwd=self._directory,
            run_as=self._run_as,
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGQUIT,
        )

    async def wait_ready(self) -> None:
        """Return when the database is there; waits without end, cancel it to give up.

        Raises ServerError when what answers does not know the password.
        """
        while True:
            connection = await self._connect()
            if connection is not None:
                break
            await asyncio.sleep(READY_POLL_S)
        try:
            known = "SELECT FROM pg_database WHERE datname = $1"
            if await connection.fetchrow(known, DATABASE) is None:
                await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()

    async def _connect(self) -> asyncpg.Connection | None:
        try:
            return await asyncpg.connect(
                self.url_of(MAINTENANCE_DATABASE), timeout=CONNECT_TIMEOUT_S
            )
        except asyncpg.InvalidPasswordError as error:
            raise ServerError(
                f"another PostgreSQL answers on port {self._port}, or the data directory was made "
                f"with another password than secrets.json holds: {error}"
            ) from error
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return None
