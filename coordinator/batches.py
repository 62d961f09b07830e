"""The loop that feeds the engine: batches of items, one or two at a time.

Always holds: an item is taken until it is answered, however long PostgreSQL stays away; a fault of
ours is narrowed down to the item that causes it, which is refused alone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from headway.coordinator.decisions import Decision
from headway.coordinator.engine import BATCH_MAX, Committed, Engine
from headway.coordinator.errors import Refusal, StoreUnavailable
from headway.coordinator.intake import Answer, Intake, Item

_LOG = logging.getLogger(__name__)

QUEUE_MAX = 2_048  # items that wait before less is pulled
SECOND_BATCH_MIN = 256  # items that must wait before a second batch starts beside the first
BATCHES_MAX = 2
PERFORMING_MAX = 8  # batches whose PubAcks are still awaited
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 0.25  # PostgreSQL is found to be back within so long; at most two batches try

Measure = Callable[[int, float, Sequence[Decision]], None]
"""Is told the items of a batch, the seconds that it took, and what was decided."""


class Batches:
    def __init__(
        self,
        intake: Intake,
        engine: Engine,
        on_room: Callable[[], None],
        on_return: Callable[[], None],
        measure: Measure,
    ) -> None:
        """`on_room` is called whenever more may be pulled; `on_return` when PostgreSQL was away and
        is there again; `measure` is told each batch that was committed."""
        self._intake = intake
        self._engine = engine
        self._on_room = on_room
        self._on_return = on_return
        self._measure = measure
        self._batches: set[asyncio.Task[None]] = set()
        self._deciding = 0  # batches that are not committed yet
        self._stored = asyncio.Semaphore(PERFORMING_MAX)
        self._store_is_down = False

    def room(self) -> int:
        """How many more items may come now; none while PostgreSQL is away."""
        return 0 if self._store_is_down else max(0, QUEUE_MAX - len(self._intake))

    def ask(self, item: Item) -> None:
        """Take an item that somebody waits for. StoreUnavailable, at once, while PostgreSQL is
        away: who asks will ask again, and what would be taken now would only pile up."""
        if self._store_is_down:
            raise StoreUnavailable("PostgreSQL is away; nothing was done, ask again")
        self._intake.put(item)

    async def run(self) -> None:
        """Batches, one at a time; a second one beside it when much waits."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._intake.wait()
                few = len(self._intake) < SECOND_BATCH_MIN
                if self._deciding and (few or self._deciding >= BATCHES_MAX):
                    self._intake.doze()
                    continue
                items = self._intake.take(BATCH_MAX)
                if items:
                    self._deciding += 1
                    batch = group.create_task(self._batch(items))
                    self._batches.add(batch)
                    batch.add_done_callback(self._batches.discard)

    async def _batch(self, items: list[Item]) -> None:
        """The next batch may begin once this one is committed."""
        try:
            committed = await self._committed(items)
        finally:
            self._deciding -= 1
            self._intake.wake()
        self._on_room()
        await self._perform(committed)

    async def _committed(self, items: list[Item]) -> Committed:
        """What is to be performed, once it may be."""
        began = time.perf_counter()
        try:
            committed = await self._commit(items)
        finally:
            self._intake.release(item.task for item in items)
        self._measure(len(items), time.perf_counter() - began, committed.decisions)
        await self._stored.acquire()
        return committed

    async def _commit(self, items: list[Item]) -> Committed:
        """Commit, however long PostgreSQL stays away. A fault of ours is narrowed down to the
        item that causes it, which is refused alone."""
        wait_s = BACKOFF_FIRST_S
        while True:
            try:
                committed = await self._engine.commit(items)
                if self._store_is_down:
                    self._store_is_down = False
                    self._on_return()
                return committed
            except StoreUnavailable as error:
                if not self._store_is_down:
                    _LOG.warning("PostgreSQL is away; nothing is lost, trying again: %s", error)
                self._store_is_down = True
            except Exception:
                _LOG.exception("deciding failed; %d items in this batch", len(items))
                return await self._one_by_one(items)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, BACKOFF_MAX_S)

    async def _one_by_one(self, items: list[Item]) -> Committed:
        if len(items) == 1:
            refusal = Refusal("this could not be decided: an internal error, see the log", 500)
            items[0].answer(Answer(None, refusal))
            return Committed()
        decisions = []
        for item in items:
            decisions += (await self._commit([item])).decisions
        return Committed(decisions)

    async def _perform(self, committed: Committed) -> None:
        try:
            try:
                await self._engine.perform(committed)
            finally:
                self._stored.release()
            await self._engine.raise_children(committed)
        except Exception:
            _LOG.exception("publishing failed; the sweep will look after it")
            self._engine.give_up(committed)

    def under_way(self) -> list[asyncio.Task[None]]:
        """The batches that are not through yet."""
        return list(self._batches)

    async def drain(self) -> None:
        """Return when everything that was taken is answered."""
        await self._intake.idle()
        await asyncio.gather(*self._batches)
