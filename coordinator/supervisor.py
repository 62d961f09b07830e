"""Keeps one server running: starts it, and starts it again whenever it ends unasked.

Always holds: a server has at most one process; what earlier ones may have left behind in its
directory has ended before the next one starts, and when `stop` returns.
"""

from __future__ import annotations

import asyncio
import logging
import time
from signal import strsignal
from typing import Protocol

from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, Process, ServerError, start_process

STOP_GRACE_S = 15.0
"""How long a server may take to end in order before it is killed."""

STILL_WAITING_S = 10.0
LOG_BOUND_EVERY_S = 1.0

STEADY_S = 5.0
"""A server that ran this long did not fall over because of its start."""

FREE_RESTARTS = 3
FIRST_PAUSE_S = 0.25
PAUSE_MAX_S = 10.0

_log = logging.getLogger("headway.coordinator.supervisor")


class Server(Protocol):
    """What can be supervised: how to prepare, launch and recognise it as ready."""

    name: str
    log: LogFile

    async def end_leftovers(self) -> None:
        """End every process of this server that is still there, whoever started it."""

    async def prepare(self) -> None:
        """Make everything ready for a launch; may be repeated."""

    def launch(self) -> Launch:
        """What to start."""

    async def wait_ready(self) -> None:
        """Return when the server does what it is for; waits without end."""


async def start_server(server: Server) -> Process:
    """Start `server` and wait until it is ready, however long its recovery takes.

    Raises ServerError, with the last lines of its log, when it ends instead.
    """
    process = await _launch(server)
    ready = asyncio.ensure_future(server.wait_ready())
    ended = asyncio.ensure_future(process.exited())
    try:
        while not (ready.done() or ended.done()):
            await asyncio.wait(
                {ready, ended}, timeout=STILL_WAITING_S, return_when=asyncio.FIRST_COMPLETED
            )
            if not (ready.done() or ended.done()):
                _log.warning("still waiting for %s; its log is %s", server.name, server.log.path)
        if not ready.done():
            raise ServerError(f"{server.name} ended while starting; {_end_of(server.log)}")
        ready.result()
    except BaseException:
        await process.stop(STOP_GRACE_S)
        raise
    finally:
        ready.cancel()
        ended.cancel()
    return process


def restart_pause_s(quick_ends: int) -> float:
    """Seconds to wait before a start, after so many ends in a row that came soon after a start."""
    if quick_ends <= FREE_RESTARTS:
        return 0.0
    doublings = min(quick_ends - FREE_RESTARTS - 1, 16)
    return float(min(FIRST_PAUSE_S * 2**doublings, PAUSE_MAX_S))


class Supervised:
    """One server under supervision. `pid` changes with each restart."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.restarts = 0
        self._process: Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Of the present process, or of the last one while there is none."""
        if self._process is None:
            raise ServerError(f"{self.server.name} was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    async def start(self) -> None:
        """Start the server, wait until it is ready, and keep it running from now on."""
        self._process = await start_server(self.server)
        _log.info("%s runs as process %d", self.server.name, self.pid)
        self._keeper = asyncio.create_task(self._keep(self._process))

    async def stop(self) -> None:
        """End the server and everything that it started; may be repeated."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        if self._process is not None:
            await self._process.stop(STOP_GRACE_S)
            _log.info("%s stopped", self.server.name)
        await self.server.end_leftovers()

    async def _keep(self, process: Process) -> None:
        quick_ends = 0
        while True:
            started = time.monotonic()
            status = await self._watch(process)
            quick_ends = quick_ends + 1 if time.monotonic() - started < STEADY_S else 1
            pause = restart_pause_s(quick_ends)
            self._say_ended(process, status, pause)
            await asyncio.sleep(pause)
            process = await self._relaunch(process)

    async def _watch(self, process: Process) -> int:
        """Wait for the end of the process, and bound its log meanwhile."""
        exited = asyncio.ensure_future(process.exited())
        try:
            while not exited.done():
                await asyncio.wait({exited}, timeout=LOG_BOUND_EVERY_S)
                self._bound_log()
            return exited.result()
        finally:
            exited.cancel()

    def _bound_log(self) -> None:
        try:
            self.server.log.bound()
        except OSError as error:
            _log.warning("cannot bound %s: %s", self.server.log.path, error)

    async def _relaunch(self, ended: Process) -> Process:
        """A new process; the ended one when it could not be started, to be tried again."""
        try:
            self._process = await _launch(self.server)
        except (ServerError, OSError) as error:
            _log.error("cannot start %s again: %s", self.server.name, error)
            return ended
        self.restarts += 1
        return self._process

    def _say_ended(self, process: Process, status: int, pause: float) -> None:
        name, log = self.server.name, self.server.log
        how = f"status {status}" if status >= 0 else f"signal {-status}, {strsignal(-status)}"
        _log.warning("%s (%d) ended with %s; again in %g s", name, process.pid, how, pause)
        if pause:
            _log.warning("%s falls over again and again; %s", name, _end_of(log))


async def _launch(server: Server) -> Process:
    await server.end_leftovers()
    await server.prepare()
    return start_process(server.launch(), server.log)


def _end_of(log: LogFile) -> str:
    return f"the end of {log.path}:\n{log.tail()}"
