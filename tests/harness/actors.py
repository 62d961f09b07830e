"""Coordinators and agents as processes of their own, to be killed, frozen and thawed."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import os
import signal
import sys
from pathlib import Path

HARNESS = Path(__file__).parent
END_S = 10.0
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Actor:
    """A process; what it narrates is in `log`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self.log = log
        self.pid = process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def ended(self, within_s: float = END_S) -> int:
        """Wait for its end; returns its exit status, negative for a signal."""
        return await asyncio.wait_for(self._process.wait(), within_s)

    async def kill(self) -> None:
        if self.running:
            self._process.kill()
        await self.ended()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)


class Actors:
    """The processes of one test; `end` leaves none behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Actor] = []
        self._numbers = itertools.count()

    async def start(
        self, script: str, *arguments: str, folder: Path = HARNESS, **environment: str
    ) -> Actor:
        """Run `script` of the harness, or of another folder below the tests. It ends with us."""
        log = self._folder / f"{script}-{next(self._numbers)}.log"
        with log.open("wb") as narration:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                folder / f"{script}.py",
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=narration,
                stderr=narration,
                env={**os.environ, "PYTHONPATH": str(HARNESS.parent), **environment},
                preexec_fn=_end_with_parent,
            )
        actor = Actor(process, log)
        self._all.append(actor)
        return actor

    async def end(self) -> None:
        for actor in self._all:
            await actor.kill()


def _end_with_parent() -> None:
    """In the child, before its exec: it may be frozen when we end, and could not do it later."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
