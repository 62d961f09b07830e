"""The one clock that all coordinators go by: PostgreSQL's, as it was read last, carried on by the
monotonic clock.

What one coordinator stores as due, another one looks after. If each went by the clock of its own
machine, one that is minutes ahead would have retries wait for minutes, and attempts given up before
they had begun. So a machine's own clock counts only until the first reading.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

NS_PER_MS = 1_000_000
READING_MAX_NS = 500 * NS_PER_MS
"""A reading that took longer could be off by half of that; it counts only if it is the first."""


def now_ms() -> int:
    """Milliseconds since 1970, UTC, as this machine has it: for what is not a coordinator's."""
    return time.time_ns() // NS_PER_MS


def monotonic() -> float:
    """Seconds on this machine's monotonic clock: looked up when it is asked, not when it is made
    someone's default, so that a simulator can put its own in the place of the machine's."""
    return time.monotonic()


class Clock:
    def __init__(self) -> None:
        self._ahead_ns = time.time_ns() - time.monotonic_ns()  # of the monotonic clock
        self._was_read = False

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return (time.monotonic_ns() + self._ahead_ns) // NS_PER_MS

    async def read(self, ask: Callable[[], Awaitable[int]]) -> None:
        """Set it by what `ask` gives, which is PostgreSQL's time in ms; its errors come through."""
        asked_at = time.monotonic_ns()
        shown_ms = await ask()
        took_ns = time.monotonic_ns() - asked_at
        if took_ns <= READING_MAX_NS or not self._was_read:
            self._was_read = True
            self._ahead_ns = shown_ms * NS_PER_MS - (asked_at + took_ns // 2)
