"""How long an attempt may take; time in which a person is waited for does not count."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class TimeLimit:
    """Calls `over` once `limit_s` seconds passed without a pause; 0 is without limit.

    Every wait for a person begins the time anew: what was used before it is forgiven.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limit_s: float, over: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._limit_s = limit_s
        self._over = over
        self._timer: asyncio.TimerHandle | None = None
        self._waits = 0
        self._ended = False

    def start(self) -> float | None:
        """Begin; returns the deadline in seconds since 1970, None if there is none."""
        if not self._limit_s or self._ended or self._waits:
            return None
        self._timer = self._loop.call_later(self._limit_s, self._over)
        return time.time() + self._limit_s

    def pause(self) -> None:
        """Somebody waits for a person now; each such wait ends with `go_on`."""
        self._waits += 1
        self._cancel()

    def go_on(self) -> float | None:
        """One wait is over; as `start`, once all are."""
        self._waits -= 1
        return self.start()

    def end(self) -> None:
        """The attempt is over: nothing is called any more."""
        self._ended = True
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
