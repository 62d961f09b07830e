"""Finding the tasks that a filter means, newest first, page by page."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import asyncpg
import orjson
from headway.agents.views import TaskFilter
from headway.coordinator.errors import Refusal
from headway.coordinator.store import Store
from headway.sagas.definition import Definition

OPEN_STATUSES = frozenset({"running", "compensating", "parked", "failed_to_compensate"})


class Listing:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, wanted: TaskFilter, cursor: str | None, limit: int
    ) -> tuple[list[asyncpg.Record], str | None]:
        """At most `limit` rows after the cursor, and the cursor after them; None: no more. Refusal
        (422) for a cursor that is none."""
        statuses = [str(status) for status in wanted.status]
        name = "list_open_tasks" if statuses and set(statuses) <= OPEN_STATUSES else "list_tasks"
        sagas, versions = await self._sagas(wanted.agent)
        rows = await self._store.fetch(
            name,
            read_cursor(cursor),
            statuses,
            wanted.saga,
            orjson.dumps(wanted.attributes).decode(),
            wanted.created_after,
            wanted.created_before,
            limit + 1,
            wanted.owner,
            sagas,
            versions,
        )
        page = rows[:limit]
        return page, str(page[-1]["id"]) if len(rows) > limit else None

    async def _sagas(self, agent: str | None) -> tuple[list[str] | None, list[int] | None]:
        """The sagas, with their versions, that have steps for an agent; None for any."""
        if agent is None:
            return None, None
        using = list(_using(agent, await self._store.fetch("list_sagas")))
        return [name for name, _ in using], [version for _, version in using]


def _using(agent: str, rows: Iterable[asyncpg.Record]) -> Iterable[tuple[str, int]]:
    for row in rows:
        if agent in Definition.from_json(row["body"]).agents():
            yield row["name"], row["version"]


def read_cursor(cursor: str | None) -> UUID | None:
    """The task that a page's cursor stands for; Refusal if it is none."""
    if cursor is None:
        return None
    try:
        return UUID(cursor)
    except ValueError as error:
        raise Refusal("cursor: not one that this API gave", 422) from error
