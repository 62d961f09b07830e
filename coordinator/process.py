"""A child process that ends with its parent, and how it is asked to stop.

Always holds:
- A child gets its own session, so a terminal's Ctrl-C reaches only the parent, which stops its
  children in order.
- On Linux the kernel signals a child when the *thread* that started it ends. So children are
  started from the main thread, and start_process refuses any other.
- Secrets never stand in `argv`, which every user of the machine can read.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from headway.agents.errors import HeadwayError
from headway.coordinator.logfile import LogFile
from headway.coordinator.serveruser import ServerUser

EXIT_POLL_MIN_S, EXIT_POLL_MAX_S = 0.005, 0.1
"""How often a child is looked at, often at first; works with every platform, loop and Python."""

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None

_log = logging.getLogger("headway.coordinator.process")


class ServerError(HeadwayError):
    """A server that Headway runs itself could not be started; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, as whom, and which signals end it; secrets go in by `stdin` or `env`. It
    inherits the descriptors `pass_fds` under their numbers."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path | None = None
    stdin: str = ""
    run_as: ServerUser | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL
    pass_fds: tuple[int, ...] = ()


class Process:
    """A child that was started; `pid` stays what it was after the child has ended."""

    def __init__(self, popen: subprocess.Popen[bytes], stop_signal: signal.Signals) -> None:
        self._popen = popen
        self._stop_signal = stop_signal

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    async def exited(self) -> int:
        """Wait for the end; the exit status, negative when a signal ended it."""
        pause = EXIT_POLL_MIN_S
        while True:
            status = self._popen.poll()
            if status is not None:
                return status
            await asyncio.sleep(pause)
            pause = min(2 * pause, EXIT_POLL_MAX_S)

    async def stop(self, grace_s: float) -> None:
        """Ask the child to end, and kill it when `grace_s` seconds have not sufficed."""
        if not self.running:
            return
        self._popen.send_signal(self._stop_signal)
        try:
            await asyncio.wait_for(self.exited(), grace_s)
        except TimeoutError:
            _log.warning("process %d did not stop within %g s: killed", self.pid, grace_s)
            await self.kill()

    async def kill(self) -> None:
        """End the child with SIGKILL and wait until it is gone."""
        if self.running:
            self._popen.kill()
        await self.exited()


def start_process(launch: Launch, log: LogFile) -> Process:
    """Start a child whose standard output and error go to `log`.

    Raises ServerError when the program cannot be run.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("start child processes from the main thread: they end with their thread")
    user = launch.run_as
    with log.open() as output, _stdin(launch) as stdin, warnings.catch_warnings():
        # Python 3.12+ warns of fork beside threads; this child only calls prctl before its exec.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            popen = subprocess.Popen(  # noqa: S603 - argv is ours
                launch.argv,
                stdin=stdin,
                stdout=output,
                stderr=output,
                cwd=launch.cwd,
                env=launch.env,
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=[] if user else None,
                umask=0o077,
                start_new_session=True,
                pass_fds=launch.pass_fds,
                preexec_fn=_die_with_parent(launch.orphan_signal),  # noqa: PLW1509 - see above
            )
        except OSError as error:
            raise ServerError(f"cannot run {launch.argv[0]}: {error}") from error
    return Process(popen, launch.stop_signal)


def _stdin(launch: Launch) -> BinaryIO:
    """A nameless file with the child's standard input; the child may open it again by path."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(launch.stdin.encode())
    file.seek(0)
    if launch.run_as:
        launch.run_as.own(file.fileno())
    return cast(BinaryIO, file)


def _die_with_parent(orphan_signal: signal.Signals) -> Callable[[], None] | None:
    """What the child does before its exec; runs after the change of user, which would undo it."""
    if _LIBC is None:
        return None
    prctl = _LIBC.prctl
    parent = os.getpid()

    def ask_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, int(orphan_signal))
        if os.getppid() != parent:  # the parent ended before the kernel was asked
            os.kill(os.getpid(), orphan_signal)

    return ask_kernel
