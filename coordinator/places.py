"""How many of a kind are served at once: of all callers together, and of each one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from headway.coordinator.errors import Refusal


class Places:
    def __init__(self, all_max: int, of_one_max: int, what: str) -> None:
        """`what` has a place: "requests", for whoever gets none."""
        self._all_max = all_max
        self._of_one_max = of_one_max
        self._what = what
        self._taken: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many are taken."""
        return self._taken.total()

    @contextmanager
    def taken(self, who: str) -> Iterator[None]:
        """While one of `who` is served; Refusal (503, 429) if there is no place."""
        if self.count >= self._all_max:
            raise Refusal(f"too many {self._what} at once; ask again", 503)
        if self._taken[who] >= self._of_one_max:
            raise Refusal(
                f"{who!r} has {self._of_one_max} {self._what} here already; wait until one ends",
                429,
            )
        self._taken[who] += 1
        try:
            yield
        finally:
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]
