"""A coordinator as a child process of `headway up`.

It gets the servers' URLs, which hold passwords, in its environment, which only its own user and
root may read; and the socket that HTTP is served on, which all of them share and which outlives
each of them.
"""

from __future__ import annotations

import os
import socket
import sys

from headway.agents.subjects import api_subject
from headway.coordinator.logfile import LogFile
from headway.coordinator.nats_server import wait_for_answer
from headway.coordinator.process import Launch

COMMAND = (sys.executable, "-P", "-m", "headway.cli.main", "coordinator")
"""-P: a folder named like one of our packages, where the user happens to be, is not imported."""

OTHERS_SECRETS = ("HEADWAY_TOKEN", "HEADWAY_PAYLOAD_KEYS")  # of people and agents


class CoordinatorChild:
    """How one coordinator is started and found ready; holds no process."""

    def __init__(
        self,
        name: str,
        log: LogFile,
        *,
        command: tuple[str, ...],
        nats_url: str,
        postgres_url: str,
        listening: socket.socket | None = None,
        console_token: str = "",
    ) -> None:
        """`listening`: where it serves HTTP; nowhere without."""
        self.name = name
        self.log = log
        self._command = command
        self._nats_url = nats_url
        self._postgres_url = postgres_url
        self._listening = listening
        self._console_token = console_token

    async def end_leftovers(self) -> None:
        """A coordinator that is left over does no harm: any number may run side by side."""

    async def prepare(self) -> None:
        """A coordinator keeps nothing on disk."""

    def launch(self) -> Launch:
        given = {
            "HEADWAY_NATS_URL": self._nats_url,
            "HEADWAY_POSTGRES_URL": self._postgres_url,
            "HEADWAY_HTTP": "",
            "HEADWAY_CONSOLE_TOKEN": self._console_token,
        }
        descriptors: tuple[int, ...] = ()
        if self._listening is not None:
            descriptors = (self._listening.fileno(),)
            given["HEADWAY_HTTP_FD"] = str(descriptors[0])
        inherited = {name: os.environ[name] for name in os.environ if name not in OTHERS_SECRETS}
        return Launch(argv=self._command, env=inherited | given, pass_fds=descriptors)

    async def wait_ready(self) -> None:
        """Return when a coordinator answers that all is well; waits without end."""
        await wait_for_answer(self._nats_url, api_subject("health"), b"{}")
