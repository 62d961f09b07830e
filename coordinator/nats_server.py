"""One nats-server with JetStream, on loopback, with a password, in a directory of its own.

The server works in its directory and names everything in it by relative paths, so the directories
above may be closed to it and their names may hold any character.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import nats.errors
from headway.coordinator.binaries import nats_server_program
from headway.coordinator.leftovers import stop_leftovers
from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch
from headway.coordinator.serveruser import ServerUser
from nats.aio.client import Client

USER = "headway"
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
CONNECT_TIMEOUT_S = 2
READY_POLL_S = 0.02

CONFIG = """\
server_name: headway
listen: "127.0.0.1:{port}"
http: "127.0.0.1:{monitoring_port}"
authorization {{ user: "{user}", password: "{password}" }}
max_payload: {max_payload}
jetstream {{
  store_dir: "jetstream"
  sync_interval: always  # a submission is on disk before it is acknowledged
}}
"""


class NatsServer:
    """How one nats-server is prepared, started and found ready; holds no process."""

    name = "nats"
    program = "nats-server"

    def __init__(
        self,
        directory: Path,
        log: LogFile,
        *,
        port: int,
        monitoring_port: int,
        password: str,
        run_as: ServerUser | None,
    ) -> None:
        self.log = log
        self.url = f"nats://{USER}:{password}@127.0.0.1:{port}"
        self.monitoring_url = f"http://127.0.0.1:{monitoring_port}"
        self.store = directory / "jetstream"
        self._directory = directory
        self._run_as = run_as
        self._config = CONFIG.format(
            port=port,
            monitoring_port=monitoring_port,
            user=USER,
            password=password,
            max_payload=MAX_PAYLOAD_BYTES,
        )

    async def prepare(self) -> None:
        """Make the directory fit to be served, by nobody else; may be repeated."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        await stop_leftovers(self.program, self._directory, signal.SIGTERM)
        config = self._directory / "nats.conf"
        config.unlink(missing_ok=True)
        with os.fdopen(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._config)
        if self._run_as:
            self._run_as.own(self._directory)
            self._run_as.own(config)

    def launch(self) -> Launch:
        return Launch(
            argv=(str(nats_server_program(self._run_as)), "-c", "nats.conf"),
            env={},
            cwd=self._directory,
            run_as=self._run_as,
        )

    async def wait_ready(self) -> None:
        """Return when a client can use JetStream; waits without end, cancel it to give up."""
        while True:
            if await self._answers():
                return
            await asyncio.sleep(READY_POLL_S)

    async def _answers(self) -> bool:
        client = Client()
        try:
            await client.connect(
                self.url,
                allow_reconnect=False,
                reconnect_time_wait=0,  # nats-py waits this long before it gives up
                connect_timeout=CONNECT_TIMEOUT_S,
                error_cb=_ignore,
            )
            await client.jetstream().account_info()
        except (OSError, nats.errors.Error):
            return False
        finally:
            await client.close()
        return True


async def _ignore(_: Exception) -> None:
    """A server that is not there yet is no news."""
