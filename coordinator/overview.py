"""The operation `overview`, and keeping the tallies that it tells from.

Always holds: however many ask, the database is asked once in KEPT_S; counting tasks, and what waits
for a person, takes longer the more there are, and each at most a twentieth of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import orjson
from headway.agents.overview_views import OverviewRequest, OverviewView
from headway.agents.subjects import COMMANDS_STREAM
from headway.agents.wire import Wire
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.jetstream import oldest_at
from headway.coordinator.presence import Roll
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.coordinator.tally import (
    COUNTS,
    MINUTE_MS,
    MINUTES,
    Slice,
    Tally,
    last_minute_of,
    minutes_of,
)

KEEP_EVERY_S = 2.0  # that tallies are written down
KEPT_FOR_MS = 86_400_000  # how long they are kept
KEPT_S = 1.0  # how old an answer may be
COUNT_EVERY_S = 5.0
COUNT_SHARE = 20  # of the time that counting took, which passes at least until the next time


class Overview:
    def __init__(
        self,
        coordinator: UUID,
        tally: Tally,
        store: Store,
        wire: Wire,
        roll: Roll,
        clock: Callable[[], int],
    ) -> None:
        self._coordinator = coordinator
        self._tally = tally
        self._store = store
        self._wire = wire
        self._roll = roll
        self._clock = clock
        self._asking = asyncio.Lock()
        self._view: OverviewView | None = None
        self._viewed_at = float("-inf")
        self._tasks = _Count(store, "count_by_status", clock, COUNT_EVERY_S)
        self._waiting = _Count(store, "count_waiting", clock, KEPT_S)

    def operations(self) -> dict[str, Serve]:
        return {"overview": typed(OverviewRequest, OverviewView, self.show)}

    async def keep(self) -> None:
        """Write down what was counted since the last time."""
        changed = self._tally.changed()
        if not changed:
            return
        rows = [
            (began, *(counted.counts[name] for name in COUNTS), _durations(counted))
            for began, counted in changed.items()
        ]
        self._tally.kept(changed)
        columns = [list(column) for column in zip(*rows, strict=True)]
        oldest = self._clock() - KEPT_FOR_MS
        try:
            await self._store.fetch("keep_tallies", self._coordinator, *columns, oldest)
        except CoordinatorError:
            self._tally.again(changed)
            raise

    async def show(self, _request: OverviewRequest) -> OverviewView:
        async with self._asking:
            if self._view is None or time.monotonic() - self._viewed_at > KEPT_S:
                self._view = await self._look()
                self._viewed_at = time.monotonic()
            return self._view

    async def _look(self) -> OverviewView:
        now_ms = self._clock()
        counts = {row["status"]: row["tasks"] for row in await self._tasks.rows()}
        [waiting] = await self._waiting.rows()
        rows = await self._store.fetch("tallies_since", now_ms - (MINUTES + 1) * MINUTE_MS)
        slices = [(row["slice"], _slice(row)) for row in rows]
        [backlog] = await self._store.fetch("backlog")
        agents = self._roll.instances()
        dispatched = [await self._oldest_command(), backlog["oldest_admission"]]
        return OverviewView(
            now=datetime.fromtimestamp(now_ms / 1000, UTC),
            counted_at=datetime.fromtimestamp(self._tasks.at_ms / 1000, UTC),
            counts=counts,
            parked=waiting["waiting"],
            agents=len(agents),
            instances=sum(len(instances) for instances in agents.values()),
            oldest_dispatch_at=min((at for at in dispatched if at is not None), default=None),
            oldest_due_at=backlog["oldest_due"],
            last_minute=last_minute_of(slices, now_ms),
            minutes=minutes_of(slices, now_ms),
        )

    async def _oldest_command(self) -> datetime | None:
        """Since when the oldest command is in the stream; None if there is none, or it is away."""
        with suppress(CoordinatorError):
            return await oldest_at(self._wire, COMMANDS_STREAM)
        return None


class _Count:
    """What a statement counts, as it was at `at_ms`: asked again after `every_s` at the earliest,
    and so seldom that it takes at most one COUNT_SHAREth of the time."""

    def __init__(
        self, store: Store, statement: str, clock: Callable[[], int], every_s: float
    ) -> None:
        self._store = store
        self._statement = statement
        self._clock = clock
        self._every_s = every_s
        self._rows: list[asyncpg.Record] = []
        self._again_at = float("-inf")
        self.at_ms = 0

    async def rows(self) -> list[asyncpg.Record]:
        began = time.monotonic()
        if began >= self._again_at:
            self._rows = await self._store.fetch(self._statement)
            self.at_ms = self._clock()
            took_s = time.monotonic() - began
            self._again_at = began + max(self._every_s, COUNT_SHARE * took_s)
        return self._rows


def _durations(counted: Slice) -> str:
    return orjson.dumps(
        {str(bucket): tasks for bucket, tasks in counted.durations.items()}
    ).decode()


def _slice(row: asyncpg.Record) -> Slice:
    found = Slice()
    for name in COUNTS:
        found.counts[name] = row[name]
    durations = orjson.loads(row["durations"])
    found.durations.update({int(bucket): tasks for bucket, tasks in durations.items()})
    return found
