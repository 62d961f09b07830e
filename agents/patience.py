"""Trying again what is unavailable, with growing pauses: the one loop of that kind here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headway.agents.errors import Unavailable

PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 1.0

T = TypeVar("T")

_log = logging.getLogger("headway.agents.patience")


async def patiently(
    once: Callable[[], Awaitable[T]],
    what: str,
    *,
    within_s: float | None = None,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    final: tuple[type[Unavailable], ...] = (),
) -> T:
    """What `once` returns, tried again while it raises Unavailable.

    Without `within_s` (seconds) there is no end to it. The last error comes through when time
    is up, and one of the `final` kinds at once. `pause` waits so many seconds, or less.
    """
    deadline = None if within_s is None else time.monotonic() + within_s
    pause_s = PAUSE_FIRST_S
    while True:
        try:
            return await once()
        except final:
            raise
        except Unavailable as error:
            if deadline is not None and time.monotonic() + pause_s > deadline:
                raise
            level = logging.WARNING if pause_s == PAUSE_MAX_S else logging.DEBUG
            _log.log(level, "%s: not yet: %s", what, error)
        await pause(pause_s)
        pause_s = min(2 * pause_s, PAUSE_MAX_S)
