"""The loop that feeds the engine: what it must never wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headway.agents.identity import new_task_id
from headway.coordinator.batches import PERFORMING_MAX, Batches
from headway.coordinator.engine import Committed
from headway.coordinator.intake import Answer, Intake, Item
from headway.sagas import inputs as i

PARENTS = PERFORMING_MAX + 1  # all slots for publishing, and a batch that waits for one


class Parents:
    """An engine whose items each begin a child, once PARENTS of them are committed."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self.committed = 0
        self.full = asyncio.Event()

    async def commit(self, items: Sequence[Item]) -> Committed:
        for each in items:
            each.answer(Answer(None))
        self.committed += 1
        if self.committed == PARENTS:
            self.full.set()
        return Committed()

    async def perform(self, _committed: Committed) -> None:
        await asyncio.sleep(0)

    async def raise_children(self, _committed: Committed) -> None:
        if self.full.is_set():
            return
        await self.full.wait()
        born = asyncio.Event()
        self.intake.put(item(lambda _: born.set()))
        await born.wait()


def item(answer: object) -> Item:
    return Item(new_task_id(), i.Tick(0), answer)  # type: ignore[arg-type]


async def test_children_that_wait_for_later_batches_keep_no_batch_from_its_turn() -> None:
    intake = Intake()
    batches = Batches(intake, Parents(intake), lambda: None, lambda: None, lambda *_: None)  # type: ignore[arg-type]
    running = asyncio.create_task(batches.run())
    for _ in range(PARENTS):
        committed = asyncio.Event()
        intake.put(item(lambda _, committed=committed: committed.set()))
        await committed.wait()
    await asyncio.wait_for(batches.drain(), 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
