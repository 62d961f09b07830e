"""Truths that stores are opened on: a fresh database of PostgreSQL, or fresh tables in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from harness.services import RunningPostgres
from headway.coordinator.store import Store
from simulation.store import SimulatedStore
from simulation.store_tables import Tables


class Truth(Protocol):
    """What several stores have in common, as several coordinators have."""

    def store(self) -> Store: ...


class SimulatedTruth:
    def __init__(self) -> None:
        self.tables = Tables(lambda: int(time.time() * 1000))

    def store(self) -> Store:
        return SimulatedStore(self.tables)


class PostgresTruth:
    def __init__(self, postgres: RunningPostgres, database: str) -> None:
        self._postgres = postgres
        self._database = database
        self._stores: list[Store] = []

    @staticmethod
    async def made(postgres: RunningPostgres, template: str) -> PostgresTruth:
        """On a database made from this one."""
        return PostgresTruth(postgres, await postgres.create_database(template))

    def store(self) -> Store:
        store = Store(self._postgres.server.url_of(self._database))
        self._stores.append(store)
        return store

    async def drop(self) -> None:
        for store in self._stores:
            await store.close()
        await self._postgres.drop_database(self._database)


@contextmanager
def template_database(postgres: RunningPostgres) -> Iterator[str]:
    """A database with this version's schema and nothing in it."""
    name = asyncio.run(postgres.create_database())

    async def prepare() -> None:
        store = Store(postgres.server.url_of(name))
        await store.open()
        await store.close()

    asyncio.run(prepare())
    yield name
    asyncio.run(postgres.drop_database(name))
