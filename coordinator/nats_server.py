"""One nats-server with JetStream, on loopback, for users that it knows, in a directory of its own.

The server works in its directory and names everything in it by relative paths, so the directories
above may be closed to it and their names may hold any character.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import nats.errors
from headway.coordinator.binaries import nats_server_program
from headway.coordinator.cores import cores
from headway.coordinator.leftovers import end_leftovers, server_identity
from headway.coordinator.logfile import LogFile
from headway.coordinator.permissions import User, authorization
from headway.coordinator.process import Launch
from headway.coordinator.serveruser import ServerUser
from nats.aio.client import Client

PROGRAM = "nats-server"
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
ANSWER_TIMEOUT_S = 2
ANSWER_POLL_S = 0.02

CORES = "GOMAXPROCS"  # how many it may use: half, unless the environment says otherwise
JETSTREAM_INFO = "$JS.API.INFO"
SERVICE_ERROR = "Nats-Service-Error-Code"

CONFIG = """\
server_name: "{name}"  # as on the command line, or it could not be read again
listen: "127.0.0.1:{port}"
http: "127.0.0.1:{monitoring_port}"
max_payload: {max_payload}
jetstream {{
  store_dir: "jetstream"
  sync_interval: always  # a submission is on disk before it is acknowledged
}}
{extra}{authorization}"""


class NatsServer:
    """How one nats-server is prepared, started and found ready; holds no process."""

    name = "nats"

    def __init__(
        self,
        directory: Path,
        log: LogFile,
        *,
        port: int,
        monitoring_port: int,
        users: Sequence[User],
        run_as: ServerUser | None,
        extra: str = "",
    ) -> None:
        """The first of `users` is who we are ourselves; `extra` goes into the configuration."""
        self.log = log
        self._port = port
        self._users = tuple(users)
        self.url = self.url_of(users[0])
        self.monitoring_url = f"http://127.0.0.1:{monitoring_port}"
        self.store = directory / "jetstream"
        self._directory = directory
        self._run_as = run_as
        self._monitoring_port = monitoring_port
        self._extra = extra

    def url_of(self, user: User) -> str:
        """Where a user with a password connects."""
        return f"nats://{user.name}:{user.password}@127.0.0.1:{self._port}"

    async def end_leftovers(self) -> None:
        """End every nats-server that serves this directory, whoever started it."""
        await end_leftovers(PROGRAM, self._directory)

    async def prepare(self) -> None:
        """Make the directory and its configuration; may be repeated."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._run_as:
            self._run_as.own(self._directory)
        self._write_configuration()

    def admit(self, users: Sequence[User], pid: int) -> None:
        """Let these users in, and nobody else any more; the running server, `pid`, goes on."""
        self._users = tuple(users)
        self._write_configuration()
        with suppress(ProcessLookupError):  # it will read the configuration when it starts again
            os.kill(pid, signal.SIGHUP)

    def _write_configuration(self) -> None:
        """Replace the file at once or not at all."""
        configuration = CONFIG.format(
            name=server_identity(self._directory),
            port=self._port,
            monitoring_port=self._monitoring_port,
            max_payload=MAX_PAYLOAD_BYTES,
            extra=self._extra,
            authorization=authorization(self._users),
        )
        unfinished = self._directory / "nats.conf.unfinished"
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(configuration)
            if self._run_as:
                self._run_as.own(descriptor)
        unfinished.replace(self._directory / "nats.conf")

    def launch(self) -> Launch:
        program = str(nats_server_program(self._run_as))
        return Launch(
            argv=(program, "-c", "nats.conf", "--name", server_identity(self._directory)),
            env={CORES: os.environ.get(CORES) or str(_half_the_cores())},
            cwd=self._directory,
            run_as=self._run_as,
        )

    async def wait_ready(self) -> None:
        """Return when a client can use JetStream; waits without end, cancel it to give up."""
        await wait_for_answer(self.url, JETSTREAM_INFO)


def _half_the_cores() -> int:
    """Go keeps what cores it may have awake looking for work; here its clients need them, too."""
    return max(1, cores() // 2)


async def wait_for_answer(url: str, subject: str, request: bytes = b"") -> None:
    """Return when a request on `subject` of the server at `url` is answered, and not refused."""
    while True:
        if await _is_answered(url, subject, request):
            return
        await asyncio.sleep(ANSWER_POLL_S)


async def _is_answered(url: str, subject: str, request: bytes) -> bool:
    client = Client()
    try:
        await client.connect(
            url,
            allow_reconnect=False,
            reconnect_time_wait=0,  # nats-py waits this long before it gives up
            connect_timeout=ANSWER_TIMEOUT_S,
            error_cb=_ignore,
        )
        reply = await client.request(subject, request, timeout=ANSWER_TIMEOUT_S)
    except (OSError, nats.errors.Error):
        return False
    finally:
        await client.close()
    return SERVICE_ERROR not in (reply.headers or {})


async def _ignore(_: Exception) -> None:
    """A server that is not there yet is no news."""
