"""Servers that outlived the process which started them.

The kernel ends children with their parent on Linux only, and PostgreSQL's workers may outlive
their killed postmaster by as long as their query runs. Two servers on one directory would destroy
it. So every server carries the identity of its directory in its command line, which all users can
read: root in a container, for one, may not see where the processes of others work.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import psutil
from headway.coordinator.process import ServerError

POLL_S = 0.01

_log = logging.getLogger("headway.coordinator.leftovers")


def server_identity(directory: Path) -> str:
    """What the server of `directory` is called, unlike that of any other on this machine.

    A copy of the directory has another identity; none is the beginning of another.
    """
    status = directory.stat()
    return f"headway-{status.st_dev:x}-{status.st_ino:016x}"


async def end_leftovers(program: str, directory: Path) -> None:
    """Kill every `program` that serves `directory`; returns when none is left.

    The servers recover from a kill, and nobody who knows their clients is there to do better.
    """
    killed: set[int] = set()
    while left := _serving(program, directory):
        for process in left:
            if process.pid not in killed:
                killed.add(process.pid)
                _log.warning("killing leftover %s, process %d", program, process.pid)
                _kill(process)
        await asyncio.sleep(POLL_S)


def _serving(program: str, directory: Path) -> list[psutil.Process]:
    if not directory.exists():
        return []
    identity = server_identity(directory)
    return [process for process in psutil.process_iter() if _is(process, program, identity)]


def _is(process: psutil.Process, program: str, identity: str) -> bool:
    try:
        return process.name() == program and identity in " ".join(process.cmdline())
    except psutil.Error:  # ended meanwhile
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
