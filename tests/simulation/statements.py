"""The way of a process to PostgreSQL and back: slow, refusing, or losing the answer."""

from __future__ import annotations

import asyncio

from headway.coordinator.errors import StoreUnavailable
from simulation.process import Process
from simulation.store_tasks import COMMITS

LATENCY_S = 0.001
SLOW_MAX_S = 8.0
STEPS_AFTER_COMMIT_MAX = 30


class StoreLine:
    """Of one process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world
        self._rng = process.world.chance.rng(f"store/{process.name}/{process.lives}")

    async def before(self, statement: str) -> None:
        await self._way(statement)
        if self._world.store_is_down:
            raise StoreUnavailable("ConnectionRefusedError: it is away")
        if self._world.chance.hit("store_refuses", self._process.name):
            raise StoreUnavailable("ConnectionDoesNotExistError: before it was carried out")

    async def after(self, statement: str) -> None:
        if statement in COMMITS:
            self._world.told("commit", self._process.name)
            self._process.die_soon("crash_at_commit", STEPS_AFTER_COMMIT_MAX)
        await self._way(statement)
        if self._world.store_is_down:
            raise StoreUnavailable("ConnectionDoesNotExistError: it went away")
        if self._world.chance.hit("store_answer_lost", self._process.name):
            raise StoreUnavailable("ConnectionDoesNotExistError: the answer is lost")

    async def _way(self, _statement: str) -> None:
        slow = self._world.chance.hit("store_slow", self._process.name)
        late = 0.0 if slow is None else SLOW_MAX_S * slow.random() ** 3
        await asyncio.sleep(LATENCY_S * (0.2 + self._rng.random()) + late)
