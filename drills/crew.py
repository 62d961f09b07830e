"""The drill's agent processes: started as `headway agent` starts any, harmed, and ended.

Always holds: once `end` has returned, none of them is left, frozen ones included; and none outlives
a drill that is killed (on Linux).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, Process, start_process

COMMAND = (sys.executable, "-P", "-m", "headway.cli.main", "agent", "headway.drills.handlers:drill")
END_S = 5.0


class Crew:
    """Processes by their pid. `environment` tells them where the servers are."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log = LogFile(log)
        self._launch = Launch(COMMAND, {**os.environ, **environment})
        self._processes: dict[int, Process] = {}

    @property
    def running(self) -> list[int]:
        """The pids of those that have not ended."""
        return [pid for pid, one in self._processes.items() if one.running]

    def fill_up(self, count: int) -> None:
        """Have `count` of them."""
        while len(self.running) < count:
            process = start_process(self._launch, self._log)
            self._processes[process.pid] = process

    async def send(self, pid: int, number: signal.Signals) -> None:
        """Send a signal; after SIGKILL returns when the process is gone."""
        process = self._processes[pid]
        if number is signal.SIGKILL:
            await process.kill()
        elif process.running:
            os.kill(pid, number)

    def thaw(self) -> None:
        """Let all go on that were stopped."""
        for pid in self.running:
            os.kill(pid, signal.SIGCONT)

    async def end(self) -> None:
        """End all: in an orderly way where they heed that."""
        self.thaw()
        await asyncio.gather(*(one.stop(END_S) for one in self._processes.values()))

    def tail(self) -> str:
        """What they said last."""
        return self._log.tail()
