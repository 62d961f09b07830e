"""Processes of the support desk that are killed, and come back at once.

The supervisor of `headway up` pauses longer and longer for a server that falls over again and
again, which is what these are made to do.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, Process, start_process

STOP_GRACE_S = 5.0
PAUSE_S = 1.0  # after a process that ended by itself, which will do so again


class Member:
    """One role, and the process that plays it now. `deaths` counts those that were killed.

    The number of the present process is in `pid_file`, while there is one.
    """

    def __init__(self, name: str, launch: Launch, folder: Path) -> None:
        self.name = name
        self.deaths = 0
        self.pid_file = folder / f"{name}.pid"
        self._launch = launch
        self._log = LogFile(folder / "logs" / f"{name}.log")
        self._process: Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Of the present process, or of the last one while there is none."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    async def start(self) -> None:
        """Start a process, and another one whenever it ends."""
        self._begin()
        self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End it, whatever state it is in; may be repeated."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        if self._process is not None:
            self.thaw()
            await self._process.stop(STOP_GRACE_S)

    def thaw(self) -> None:
        """Let a frozen process go on; one that is not frozen does not notice."""
        if self._process is not None and self._process.running:
            os.kill(self._process.pid, signal.SIGCONT)

    def _begin(self) -> Process:
        self._process = process = start_process(self._launch, self._log)
        self.pid_file.write_text(str(process.pid))
        return process

    async def _keep(self) -> None:
        process = self._process
        assert process is not None
        while True:
            if await process.exited() >= 0:
                await asyncio.sleep(PAUSE_S)
            self.pid_file.unlink(missing_ok=True)
            self.deaths += 1
            process = self._begin()
