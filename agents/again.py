"""Ending waits for a coordinator early: it will not answer any more, or another one can now.

Coordinators say on ASK_AGAIN that one was lost, has begun, or can work again; and when our own
connection was cut, what we asked, or its answer, may have been lost with it. Without this a wait
lasts as long as its timeout, or its pause. Core NATS may lose what it says: then it lasts so long.
"""

from __future__ import annotations

import asyncio


class Again:
    """The waits of one connection."""

    def __init__(self) -> None:
        self._waits: dict[asyncio.Timeout, None] = {}

    def add(self, wait: asyncio.Timeout) -> None:
        """Have this wait end as if its time was up; when it ends otherwise, `discard` it."""
        self._waits[wait] = None

    def discard(self, wait: asyncio.Timeout) -> None:
        self._waits.pop(wait, None)

    async def pause(self, seconds: float) -> None:
        """Sleep, at most so long."""
        wait = asyncio.timeout(seconds)
        self.add(wait)
        try:
            async with wait:
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            return
        finally:
            self.discard(wait)

    def now(self) -> None:
        """End all waits."""
        waits, self._waits = self._waits, {}
        for wait in waits:
            if not wait.expired():
                wait.reschedule(asyncio.get_running_loop().time())
