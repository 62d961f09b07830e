"""How many requests are worked on at once: of all callers together, and of each one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from headway.coordinator.errors import Refusal
from headway.coordinator.problems import BUSY

REQUESTS_MAX = 256  # in one coordinator; more are told to come again
REQUESTS_OF_ONE_MAX = 64  # of one token


class Places:
    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._all = 0

    @contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """While a request of `caller` is worked on; Refusal (503, 429) if there is no place."""
        if self._all >= REQUESTS_MAX:
            raise Refusal(BUSY, 503)
        if self._taken[caller] >= REQUESTS_OF_ONE_MAX:
            raise Refusal(
                f"token {caller!r} has {REQUESTS_OF_ONE_MAX} requests under way; wait for one", 429
            )
        self._all += 1
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._all -= 1
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]
