"""The truth: tasks, their history and their sagas in PostgreSQL.

Always holds: a state is only written together with the events that lead to it, and only if its
version is still the one that was read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from headway.agents.manifest import Manifest
from headway.coordinator import literals as li
from headway.coordinator.database import Database
from headway.coordinator.records import Change, Loaded, Parent, stored_trace, trace_in
from headway.coordinator.registry import Registry
from headway.sagas import codec
from headway.sagas.plan import planned

_LOG = logging.getLogger(__name__)

Write = Callable[[list[Any]], Any]
"""How a column is written: as a literal, or as a list for asyncpg to encode."""

_CHANGED: Sequence[Write] = (
    *(li.ids, li.numbers, li.numbers, li.words, list),
    *(li.numbers, li.numbers, li.flags, li.numbers),
)
_NEW: Sequence[Write] = (
    *(li.ids, list, li.numbers, li.numbers, li.words, list),
    *(li.numbers, li.numbers, list, list, list, li.flags),
    *(list, list, li.flags, list, li.numbers, list),
)
_HISTORY: Sequence[Write] = (li.ids, li.numbers, li.words, li.numbers, list)
_OWED: Sequence[Write] = (li.ids, li.numbers, li.numbers)

ENGINE_CONNECTIONS = 2
SERVICE_CONNECTIONS = 4


class Store:
    """Reads and commits. StoreUnavailable means: nothing happened, or it is not known; retry."""

    def __init__(self, url: str) -> None:
        self._engine = Database(url, size=ENGINE_CONNECTIONS, pinned_plans=True)
        self._service = Database(url, size=SERVICE_CONNECTIONS, pinned_plans=False)
        self.sagas = Registry(self._engine)

    async def open(self) -> None:
        """Bring the schema up to date; SchemaMismatch if this version cannot use it."""
        await self._service.migrate()

    async def close(self) -> None:
        await self._engine.close()
        await self._service.close()

    async def load(self, ids: Sequence[UUID]) -> dict[UUID, Loaded]:
        """These tasks as they are now, for the engine; those that do not exist are left out."""
        return await self._load(self._engine, ids)

    async def read(self, ids: Sequence[UUID]) -> dict[UUID, Loaded]:
        """As `load`, for everybody else: does not keep the engine waiting. A task that this version
        cannot read is told in the log and left out, so that it keeps no other from its turn."""
        return await self._load(self._service, ids, leave_out=True)

    async def commit(self, changes: Sequence[Change]) -> set[UUID]:
        """Commit, in one statement, each change whose task is still at the version read.

        Returns the ids that did not go through: decide again on what is stored now.
        """
        if len(changes) == 1 and not changes[0].owes_spans:
            return await self._commit_alone(changes[0])
        [answer] = await self._engine.fetch("commit_batch", *_arrays(changes))
        if answer["went_through"] == len(changes):
            return set()
        return {change.id for change in changes} - set(answer["ids"] or ())

    async def _commit_alone(self, change: Change) -> set[UUID]:
        """As `commit`, by a smaller statement: what comes at a low rate comes one by one."""
        name, row = "commit_change", _changed(change)
        if change.new is not None:
            name, row = "commit_new", _new(change)
        _, *history = li.columns(_history(change), len(_HISTORY))
        [answer] = await self._engine.fetch(name, *row, *history)
        return set() if answer["went_through"] else {change.id}

    async def claim_due(self, now: int, lease_ms: int, limit: int) -> list[UUID]:
        rows = await self._service.fetch("claim_due", now, lease_ms, limit)
        return [row["id"] for row in rows]

    async def postpone(self, timers: Sequence[tuple[UUID, int, int]]) -> None:
        """Put off timers: (task, version read, due in ms)."""
        if timers:
            ids, versions, dues = zip(*timers, strict=True)
            await self._service.fetch("postpone", list(ids), list(versions), list(dues))

    async def owner_of(self, task: UUID) -> str | None:
        """Whose a task is; None if there is none."""
        rows = await self._service.fetch("owner_of_task", task)
        return rows[0]["owner"] if rows else None

    async def open_tasks(self, after: UUID, limit: int, due_before: int | None) -> list[UUID]:
        rows = await self._service.fetch("open_tasks", after, limit, due_before)
        return [row["id"] for row in rows]

    async def fetch(self, name: str, *arguments: Any) -> list[asyncpg.Record]:
        """A named statement of the service side: lists, histories, housekeeping."""
        return await self._service.fetch(name, *arguments)

    async def _load(
        self, database: Database, ids: Sequence[UUID], *, leave_out: bool = False
    ) -> dict[UUID, Loaded]:
        if not ids:
            return {}
        rows = await database.fetch("load_tasks", list(ids))
        await self.sagas.learn({(row["saga"], row["saga_version"]) for row in rows})
        found: dict[UUID, Loaded] = {}
        for row in rows:
            try:
                found[row["id"]] = self._loaded(row)
            except Exception as error:  # whatever is wrong with it, it is this row's
                if not leave_out:
                    raise
                _LOG.error("task %s cannot be read: %s", row["id"], type(error).__name__)
        return found

    def _loaded(self, row: asyncpg.Record) -> Loaded:
        task = codec.decode_task(row["status"], row["version"], row["state"])
        saga = self.sagas.known(row["saga"], row["saga_version"])
        return Loaded(
            row["id"],
            planned(saga, task.beside.plan),
            task,
            row["input"],
            row["input_digest"],
            row["created_at"],
            row["updated_at"],
            row["due_at"],
            orjson.loads(row["attributes"]),
            Manifest.model_validate_json(row["manifest"]) if row["manifest"] else None,
            _parent(row["parent"]) if row["parent"] else None,
            row["owner"],
            row["priority"],
            trace_in(row["trace"]),
        )


def _parent(stored: bytes) -> Parent:
    task, *rest = orjson.loads(stored)
    return Parent(UUID(task), *rest)


def _arrays(changes: Sequence[Change]) -> list[Any]:
    """What `commit_batch` is given, in the order of its parameters: columns, a time and a count."""
    changed = [_changed(change) for change in changes if change.new is None]
    new = [_new(change) for change in changes if change.new is not None]
    history = [row for change in changes for row in _history(change)]
    owed = [
        (change.id, change.expected, change.task.version) for change in changes if change.owes_spans
    ]
    return [
        *_written(_CHANGED, changed),
        *_written(_NEW, new),
        *_written(_HISTORY, history),
        *_written(_OWED, owed),
        max((change.at for change in changes), default=0),
        len(changes),
    ]


def _written(write: Sequence[Write], rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The columns of these rows, each as it is written."""
    columns = li.columns(rows, len(write))
    return [each(column) for each, column in zip(write, columns, strict=True)]


def _history(change: Change) -> list[tuple[Any, ...]]:
    first = change.task.version - len(change.events) + 1
    return [
        (change.id, version, codec.event_type(event), event.at, codec.encode_event(event))
        for version, event in enumerate(change.events, first)
    ]


def _changed(change: Change) -> tuple[Any, ...]:
    task = change.task
    return (
        change.id,
        change.expected,
        task.version,
        task.status,
        change.state,
        change.due,
        change.at,
        change.waits,
        change.saga_version,
    )


def _new(change: Change) -> tuple[Any, ...]:
    task, new = change.task, change.new
    assert new is not None
    return (
        change.id,
        new.saga,
        change.saga_version,
        task.version,
        task.status,
        change.state,
        change.due,
        change.at,
        new.input,
        new.input_digest,
        orjson.dumps(new.attributes).decode(),
        new.version is None,
        None if new.manifest is None else new.manifest.model_dump_json().encode(),
        None if new.parent is None else orjson.dumps([str(new.parent.task), *new.parent[1:]]),
        change.waits,
        new.owner,
        new.priority,
        stored_trace(new.trace),
    )
