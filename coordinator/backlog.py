"""What waits to be sent and may be lost: the newest, up to a bound."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    def __init__(self, limit: int, dropped: Callable[[], None]) -> None:
        """`dropped` is told of each that went for lack of room."""
        self._waiting: deque[T] = deque()
        self._limit = limit
        self._dropped = dropped

    def put(self, each: T) -> None:
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._dropped()
        self._waiting.append(each)

    def look(self, limit: int) -> list[T]:
        """The oldest, at most `limit`."""
        return list(islice(self._waiting, limit))

    def gone(self, count: int) -> None:
        """The oldest are sent."""
        for _ in range(min(count, len(self._waiting))):
            self._waiting.popleft()
