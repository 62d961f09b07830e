"""How many tasks of each saga have which status: counted when asked for, and not too often.

Always holds: counting takes at most a twentieth of PostgreSQL's time, whatever the number of tasks
and of those who ask; so the counts are as old as twenty times what counting took, and a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headway.agents.views import TaskStatus
from headway.coordinator.clock import monotonic
from headway.coordinator.store import Store

FRESH_S = 1.0
PAUSE_PER_WORK = 20

Counts = Mapping[TaskStatus, int]


@dataclass(frozen=True, slots=True)
class Counted:
    """By saga and version."""

    at: datetime | None = None
    counts: Mapping[tuple[str, int], Counts] = field(default_factory=dict)

    def of(self, saga: str, version: int) -> Counts:
        return self.counts.get((saga, version), {})


class Census:
    """As one coordinator counts. `clock` is in ms since 1970."""

    def __init__(
        self, store: Store, clock: Callable[[], int], monotonic: Callable[[], float] = monotonic
    ) -> None:
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._counting = asyncio.Lock()
        self._counted = Counted()
        self._good_until = float("-inf")

    async def look(self) -> Counted:
        """The counts, as they were a while ago at most."""
        async with self._counting:
            if self._monotonic() >= self._good_until:
                await self._count()
        return self._counted

    async def _count(self) -> None:
        began = self._monotonic()
        at = datetime.fromtimestamp(self._clock() / 1000, UTC)
        counts: dict[tuple[str, int], dict[TaskStatus, int]] = {}
        for row in await self._store.fetch("count_by_saga"):
            counts.setdefault((row["saga"], row["saga_version"]), {})[row["status"]] = row["tasks"]
        ended = self._monotonic()
        self._counted = Counted(at, counts)
        self._good_until = ended + FRESH_S + PAUSE_PER_WORK * (ended - began)
