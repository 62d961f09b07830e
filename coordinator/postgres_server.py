"""One PostgreSQL, on loopback TCP only, with a password, in a directory of its own.

Always holds:
- The data directory gets its name only when it is complete: a start that was interrupted while
  making it begins again.
- The server works in its directory, and where it runs as another user it is told so by
  /proc/self/cwd, so the directories above may be closed to it.
- There is no unix socket: no trusted local access, and no limit on the length of paths.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import asyncpg
import psutil
from headway.coordinator.binaries import postgres_programs
from headway.coordinator.leftovers import end_leftovers
from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, ServerError, start_process
from headway.coordinator.serveruser import ServerUser

PROGRAM = "postgres"
USER = "headway"
DATABASE = "headway"
MAINTENANCE_DATABASE = "postgres"
MAJOR_VERSION = "18"
CONNECT_TIMEOUT_S = 2.0
READY_POLL_S = 0.02

ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}
INITDB = (
    *("--username", USER),
    *("--encoding", "UTF8"),
    *("--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
    *("--auth", "scram-sha-256"),
    *("--pwfile", "/dev/stdin"),
    "--no-instructions",
)


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
        self._settings = {"unix_socket_directories": "", **(settings or {})}

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self._port}/{database}"

    async def end_leftovers(self) -> None:
        """End every postgres that works in this directory, whoever started it."""
        await end_leftovers(PROGRAM, self._directory)

    async def prepare(self) -> None:
        """Make the data directory if need be; may be repeated, with no server in it."""
        if not self._directory.exists():
            await self._make()
        self._check_version()
        self._drop_misleading_pid()

    def launch(self) -> Launch:
        settings = [part for item in self._settings.items() for part in ("-c", "=".join(item))]
        listen = ("-h", "127.0.0.1", "-p", str(self._port))
        return Launch(
            argv=(*self._command(PROGRAM, self._directory), *listen, *settings),
            env=ENVIRONMENT,
            cwd=self._directory,
            run_as=self._run_as,
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGQUIT,
        )

    async def wait_ready(self) -> None:
        """Return when the database is there; waits without end, cancel it to give up.

        Raises ServerError when another PostgreSQL answers in the place of this one.
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

    def _command(self, program: str, directory: Path) -> tuple[str, ...]:
        data = "/proc/self/cwd" if self._run_as else str(directory)
        return (str(postgres_programs(self._run_as) / program), "-D", data)

    async def _make(self) -> None:
        """Make the data directory beside its place, then put it there."""
        if self._run_as is None:
            _check_user_is_known()
        unfinished = self._directory.with_name(f"{self._directory.name}-unfinished")
        await end_leftovers(PROGRAM, unfinished)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700, parents=True)
        if self._run_as:
            self._run_as.own(unfinished)
        launch = Launch(
            argv=(*self._command("initdb", unfinished), *INITDB),
            env=ENVIRONMENT,
            cwd=unfinished,
            run_as=self._run_as,
            stdin=f"{self._password}\n",
        )
        initdb = start_process(launch, self.log)
        try:
            status = await initdb.exited()
        finally:
            await initdb.kill()
        if status != 0:
            raise ServerError(f"initdb failed with status {status}:\n{self.log.tail()}")
        unfinished.rename(self._directory)

    def _drop_misleading_pid(self) -> None:
        """Drop a dead server's pid file that is damaged, or whose pid another process has got.

        PostgreSQL would take that process for itself and not start. Any other pid file is left to
        PostgreSQL, which cleans up by it.
        """
        pid_file = self._directory / "postmaster.pid"
        if not pid_file.exists():
            return
        pid = pid_file.read_text().partition("\n")[0]
        if not pid.isdigit() or psutil.pid_exists(int(pid)):
            pid_file.unlink()

    def _check_version(self) -> None:
        found = (self._directory / "PG_VERSION").read_text().strip()
        if found != MAJOR_VERSION:
            raise ServerError(
                f"{self._directory} was made by PostgreSQL {found}, and this is {MAJOR_VERSION}: "
                "dump it with the older version, or start anew in another data directory"
            )


def _check_user_is_known() -> None:
    """Raises ServerError when initdb would, as in a container run under a user id of nobody's."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError as error:
        raise ServerError(
            f"user id {os.geteuid()} has no entry in /etc/passwd, and PostgreSQL needs one to make "
            "its files: add one, run as another user or as root, or use servers of your own"
        ) from error
