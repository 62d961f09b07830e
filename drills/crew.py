"""The drill's agent processes: started as `headway agent` starts any, harmed, and ended.

Always holds: once `end` has returned, none of them is left, frozen ones included.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

COMMAND = (sys.executable, "-P", "-m", "headway.cli.main", "agent", "headway.drills.handlers:drill")
END_S = 15.0


class Crew:
    """Processes by their pid. `environment` tells them where the servers are."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        self._environment = {**os.environ, **environment}
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    @property
    def running(self) -> list[int]:
        """The pids of those that have not ended."""
        return [pid for pid, one in self._processes.items() if one.returncode is None]

    async def fill_up(self, count: int) -> None:
        """Have `count` of them."""
        while len(self.running) < count:
            with self._log.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *COMMAND,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,  # a Ctrl-C is ours to deal with
                )
            self._processes[process.pid] = process

    async def send(self, pid: int, number: signal.Signals) -> None:
        """Send a signal; after SIGKILL returns when the process is gone."""
        process = self._processes[pid]
        if process.returncode is None:
            process.send_signal(number)
        if number is signal.SIGKILL:
            await process.wait()

    async def end(self) -> None:
        """End all: in an orderly way where they heed that."""
        for pid in self.running:
            await self.send(pid, signal.SIGCONT)
            await self.send(pid, signal.SIGTERM)
        waiting = [asyncio.ensure_future(one.wait()) for one in self._processes.values()]
        if waiting:
            await asyncio.wait(waiting, timeout=END_S)
        for pid in self.running:
            await self.send(pid, signal.SIGKILL)

    def tail(self, lines: int = 3) -> str:
        """What they said last."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
