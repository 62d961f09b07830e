"""Servers that outlived the process which started them.

The kernel ends children with their parent on Linux only, and PostgreSQL's workers may outlive
their killed postmaster by as long as their query runs. Two servers on one directory would destroy
it. A leftover is known by its program and by working in the directory that it serves, so no other
process is ever taken for one, whatever its pid.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import psutil
from headway.coordinator.process import ServerError

POLL_S = 0.01

_log = logging.getLogger("headway.coordinator.leftovers")


async def end_leftovers(program: str, directory: Path) -> None:
    """Kill every `program` that works in `directory`; returns when none is left.

    The servers recover from a kill, and nobody who knows their clients is there to do better.
    """
    killed: set[int] = set()
    while left := _at_work(program, directory):
        for process in left:
            if process.pid not in killed:
                killed.add(process.pid)
                _log.warning("killing leftover %s, process %d", program, process.pid)
                _kill(process)
        await asyncio.sleep(POLL_S)


def _at_work(program: str, directory: Path) -> list[psutil.Process]:
    home = str(directory.resolve())
    return [process for process in psutil.process_iter() if _serves(process, program, home)]


def _serves(process: psutil.Process, program: str, home: str) -> bool:
    try:
        return process.name() == program and process.cwd() == home
    except psutil.Error:  # ended meanwhile, or of a user whose processes are none of ours
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        _log.debug("leftover %d ended by itself", process.pid)
    except psutil.AccessDenied as error:
        raise ServerError(
            f"process {process.pid} of another user still serves this data: stop it first"
        ) from error
