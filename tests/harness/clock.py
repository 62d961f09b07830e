"""A process's clock that another process moves: `time.time` and `time.time_ns`, by a file.

The file holds the seconds by which the clock is ahead. Timers and timeouts, which are on the
monotonic clock, stay as they are: so it is with a clock that is set.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

VARIABLE = "HEADWAY_TEST_CLOCK"  # names the file, for processes of the harness
_AHEAD = struct.Struct("d")


class Clock:
    """The hand on a process's clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set_ahead(0.0)

    def set_ahead(self, seconds: float) -> None:
        """From now on the clock shows so many seconds more, or less, than the real time."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(_AHEAD.pack(seconds))


def follow_if_told() -> None:
    """Let this process's clock follow the file that the environment names, if it does."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    with Path(path).open("rb") as file:
        shown = mmap.mmap(file.fileno(), _AHEAD.size, access=mmap.ACCESS_READ)
    real, real_ns = time.time, time.time_ns

    def ahead() -> float:
        return float(_AHEAD.unpack_from(shown)[0])

    time.time = lambda: real() + ahead()
    time.time_ns = lambda: real_ns() + round(ahead() * 1e9)
