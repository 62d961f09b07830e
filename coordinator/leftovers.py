"""Servers that outlived the process which started them.

The kernel ends children with their parent on Linux only, and PostgreSQL's workers may outlive
their killed postmaster by as long as their query runs. Two servers on one directory would destroy
it. A leftover is known by its program and by working in the directory that it serves, which no
reused pid can imitate.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from pathlib import Path

import psutil

STOP_GRACE_S = 10.0
POLL_S = 0.02

_log = logging.getLogger("headway.coordinator.leftovers")


async def stop_leftovers(program: str, directory: Path, stop_signal: signal.Signals) -> None:
    """End every `program` that works in `directory`; returns when none is left."""
    deadline = time.monotonic() + STOP_GRACE_S
    sent = stop_signal
    told: set[tuple[int, signal.Signals]] = set()
    while left := _at_work(program, directory):
        if time.monotonic() > deadline:
            sent = signal.SIGKILL
        for process in left:
            if (process.pid, sent) not in told:
                told.add((process.pid, sent))
                _log.warning("leftover %s, process %d: %s", program, process.pid, sent.name)
                _send(process, sent)
        await asyncio.sleep(POLL_S)


def _at_work(program: str, directory: Path) -> list[psutil.Process]:
    home = str(directory.resolve())
    return [process for process in psutil.process_iter() if _serves(process, program, home)]


def _serves(process: psutil.Process, program: str, home: str) -> bool:
    try:
        return process.name() == program and process.cwd() == home
    except psutil.Error:  # ended meanwhile, or of a user whose processes are none of ours
        return False


def _send(process: psutil.Process, stop_signal: signal.Signals) -> None:
    try:
        process.send_signal(stop_signal)
    except psutil.NoSuchProcess:
        _log.debug("leftover %d ended by itself", process.pid)
