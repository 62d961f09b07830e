"""Keeps one server running: starts it, and starts it again whenever it ends unasked."""

from __future__ import annotations

import asyncio
from typing import Protocol

from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, Process, ServerError, start_process

START_WITHIN_S = 120.0
"""Long enough for PostgreSQL to recover after a crash."""


class Server(Protocol):
    """What can be supervised: how to prepare, launch and recognise it as ready."""

    name: str
    log: LogFile

    async def prepare(self) -> None: ...
    def launch(self) -> Launch: ...
    async def wait_ready(self) -> None: ...


async def start_server(server: Server, within_s: float = START_WITHIN_S) -> Process:
    """Start `server` and wait until it is ready.

    Raises ServerError, with the last lines of its log, when it ends or is not ready in time.
    """
    await server.prepare()
    process = start_process(server.launch(), server.log)
    ready = asyncio.ensure_future(server.wait_ready())
    exited = asyncio.ensure_future(process.exited())
    try:
        await asyncio.wait({ready, exited}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            raise ServerError(_why_not(server, process, within_s))
        ready.result()
    except BaseException:
        await process.kill()
        raise
    finally:
        ready.cancel()
        exited.cancel()
    return process


def _why_not(server: Server, process: Process, within_s: float) -> str:
    what = f"was not ready within {within_s:g} s" if process.running else "ended while starting"
    return f"{server.name} {what}; the end of {server.log.path}:\n{server.log.tail()}"
