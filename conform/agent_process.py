"""The process of the agent under test, if the kit is to start it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, Process, start_process

NATS_URL = "HEADWAY_NATS_URL"
CREDS = "HEADWAY_CREDS"
STOP_GRACE_S = 5.0


class AgentProcess:
    """Started with `environment` over ours, in the current directory; what it writes goes to
    `log`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = LogFile(log)
        launch = Launch(tuple(command), {**os.environ, **environment})
        self._process: Process = start_process(launch, self.log)

    @property
    def running(self) -> bool:
        return self._process.running

    def tell_to_stop(self) -> None:
        os.kill(self._process.pid, signal.SIGTERM)

    async def exited(self, within_s: float) -> int | None:
        """Its exit status, once it has ended; None if it has not in time."""
        try:
            return await asyncio.wait_for(self._process.exited(), within_s)
        except TimeoutError:
            return None

    async def stop(self) -> None:
        """End it, whatever state it is in."""
        await self._process.stop(STOP_GRACE_S)
