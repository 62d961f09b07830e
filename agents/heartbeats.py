"""Saying that a handler is alive, and how far it came: no more often than is of use.

The first is said only if the step has a `heartbeat` timeout; progress is said in any case, and what
was said last is never left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headway.agents import plainjson
from headway.agents.errors import InvalidInput
from headway.agents.signatures import ANYTHING

PER_TIMEOUT = 3  # said at most this often within a heartbeat timeout, however often it is called
PROGRESS_INTERVAL_S = 1.0  # of steps without that timeout
PROGRESS_MAX_BYTES = 16_384

Say = Callable[[int, bytes], bool]
"""Says the number of a heartbeat, from 1, and its progress as JSON (b"" is none). False: it cannot
be said now."""


class Heartbeats:
    """Those of one attempt, for a loop; `timeout_ms` is the step's, 0 if it has none."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_ms: int, say: Say) -> None:
        self._loop = loop
        self._wanted = timeout_ms > 0
        self._interval_s = timeout_ms / 1000 / PER_TIMEOUT if self._wanted else PROGRESS_INTERVAL_S
        self._say_it = say
        self._said = 0
        self._said_at = float("-inf")
        self._news = b""
        self._timer: asyncio.TimerHandle | None = None

    def beat(self, progress: Any = None) -> None:
        """In the loop. Raises InvalidInput for progress that is no JSON, or too much."""
        self._beat(_encoded(progress))

    def beat_from_thread(self, progress: Any = None) -> None:
        """As `beat`, in any thread."""
        self._loop.call_soon_threadsafe(self._beat, _encoded(progress))

    def end(self) -> None:
        """Say nothing more, and know nobody any more: nothing is left in a cycle."""
        self._say_it = _to_nobody
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self, news: bytes) -> None:
        self._news = news or self._news
        if not (news or self._wanted) or self._timer is not None:
            return
        due_at = self._said_at + self._interval_s
        if self._loop.time() >= due_at:
            self._say()
        elif news:
            self._timer = self._loop.call_at(due_at, self._say)

    def _say(self) -> None:
        self._timer = None
        if self._say_it(self._said + 1, self._news):
            self._said += 1
            self._said_at = self._loop.time()
            self._news = b""


def _to_nobody(_number: int, _progress: bytes) -> bool:
    return False


def _encoded(progress: Any) -> bytes:
    if progress is None:
        return b""
    try:
        body = plainjson.encode(ANYTHING.dump_python(progress, mode="json", warnings="error"))
    except Exception as error:
        raise InvalidInput(f"progress: not JSON: {type(error).__name__}: {error}") from error
    if len(body) > PROGRESS_MAX_BYTES:
        raise InvalidInput(f"progress: {len(body)} bytes, more than {PROGRESS_MAX_BYTES}")
    return body
