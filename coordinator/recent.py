"""The tasks that this coordinator committed last, as it left them.

A hint, never the truth: another coordinator may have gone on since. The engine commits what it
decides on one of these only if its version is still the one stored, and decides "nothing changes"
anew on what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from headway.coordinator.records import Loaded

BUDGET_BYTES = 33_554_432  # of JSON in all; as Python objects it is several times that
TASK_MAX_BYTES = 16_384  # of JSON; a larger task is read each time


class Recent:
    """Always holds: what is kept has at most BUDGET_BYTES of JSON; the oldest goes first."""

    def __init__(self) -> None:
        self._kept: dict[UUID, tuple[Loaded, int]] = {}
        self._bytes = 0

    def look(self, tasks: Iterable[UUID]) -> dict[UUID, Loaded]:
        """Those of these tasks that are at hand."""
        kept = self._kept
        return {task: kept[task][0] for task in tasks if task in kept}

    def keep(self, task: Loaded, size: int) -> None:
        """Remember how a task was left; `size` is that of its state and input as JSON."""
        known = self._kept.pop(task.id, None)
        if known is not None:
            self._bytes -= known[1]
        if task.task.ended or size > TASK_MAX_BYTES:
            return
        self._kept[task.id] = task, size
        self._bytes += size
        while self._bytes > BUDGET_BYTES:
            self.forget((next(iter(self._kept)),))

    def forget(self, tasks: Iterable[UUID]) -> None:
        for task in tasks:
            entry = self._kept.pop(task, None)
            if entry is not None:
                self._bytes -= entry[1]
