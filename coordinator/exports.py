"""The operation `export`: all that is kept of a task, in one document. Changes nothing.

Always holds: the history is whole and leads to the version that the document names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Protocol, TypeVar
from uuid import UUID

import orjson
from headway.agents.entries import Entry, JournalPage, JournalRead
from headway.agents.export_views import ExportRequest, JournalRecord, TaskRecord
from headway.agents.payloads import PayloadLost
from headway.agents.views import HistoryEntry
from headway.coordinator import portraits
from headway.coordinator.errors import Refusal
from headway.coordinator.histories import history_of
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.sagas import codec
from headway.sagas import events as e
from headway.sagas.definition import Definition

EXPORT_MAX_BYTES = 33_554_432  # of a document's history and journals; 32 MiB

M = TypeVar("M", HistoryEntry, Entry)
Read = Callable[[UUID], Awaitable[Loaded]]
ReadJournal = Callable[[JournalRead], Awaitable[JournalPage]]


class FetchPayload(Protocol):
    """A value that was kept by reference; PayloadLost if it is gone."""

    async def __call__(self, ref: str, digest: str) -> bytes: ...


class Exports:
    def __init__(
        self,
        store: Store,
        read: Read,
        read_journal: ReadJournal,
        fetch_payload: FetchPayload,
        clock: Callable[[], int],
    ) -> None:
        """`read` gives a task as it is, `read_journal` a page of a journal."""
        self._store = store
        self._read = read
        self._read_journal = read_journal
        self._fetch_payload = fetch_payload
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {"export": typed(ExportRequest, TaskRecord, self.export)}

    async def export(self, request: ExportRequest) -> TaskRecord:
        """The document; Refusal (413) if it would be larger than EXPORT_MAX_BYTES."""
        loaded = await self._read(request.task)
        room = _Room()
        events = await history_of(self._store, loaded)
        history = [room.taken(_entry(number, event)) for number, event in enumerate(events, 1)]
        return TaskRecord(
            exported_at=datetime.fromtimestamp(self._clock() / 1000, UTC),
            headway=version("headway"),
            task=loaded.id,
            saga=loaded.definition.name,
            status=loaded.task.status.value,
            version=loaded.task.version,
            owner=loaded.owner,
            priority=loaded.priority,
            attributes=loaded.attributes,
            parent=None if loaded.parent is None else loaded.parent.task,
            forked_from=portraits.forked_from(loaded.task),
            manifest=loaded.manifest,
            definitions=[
                orjson.loads((await self._definition(loaded.definition, number)).to_json())
                for number in _versions(loaded.definition.version, events)
            ],
            input=orjson.loads(loaded.input),
            history=history,
            journals=await self._journals(loaded.id, room),
        )

    async def _definition(self, now: Definition, number: int) -> Definition:
        if number == now.version:
            return now
        found = await self._store.sagas.definition(now.name, number)
        if found is None:
            raise Refusal(f"saga {now.name!r} has no version {number}, which the task ran", 409)
        return found

    async def _journals(self, task: UUID, room: _Room) -> list[JournalRecord]:
        rows = await self._store.fetch("journals_of_task", task)
        return [
            JournalRecord(
                step=row["step"],
                phase=row["phase"],
                entries=await self._entries(
                    JournalRead(task=task, step=row["step"], phase=row["phase"]), room
                ),
            )
            for row in rows
        ]

    async def _entries(self, request: JournalRead, room: _Room) -> list[Entry]:
        entries: list[Entry] = []
        while True:
            page = await self._read_journal(request)
            entries += [room.taken(await self._in_full(entry)) for entry in page.entries]
            if not page.more or not page.entries:
                return entries
            request = request.model_copy(update={"after": page.entries[-1].seq})

    async def _in_full(self, entry: Entry) -> Entry:
        """With a value that is kept by reference; one that was shortened stays so."""
        if not entry.dataref or entry.data is not None:
            return entry
        try:
            body = await self._fetch_payload(entry.dataref, entry.datadigest)
        except PayloadLost:
            return entry
        return entry.model_copy(update={"data": orjson.loads(body), "dataref": ""})


class _Room:
    """How much more a document may hold."""

    def __init__(self) -> None:
        self._left = EXPORT_MAX_BYTES

    def taken(self, part: M) -> M:
        self._left -= len(part.model_dump_json())
        if self._left < 0:
            raise Refusal(
                f"the task's record is larger than {EXPORT_MAX_BYTES} bytes; read its history and "
                "its journals page by page",
                413,
            )
        return part


def _entry(number: int, event: e.Event) -> HistoryEntry:
    at = datetime.fromtimestamp(event.at / 1000, UTC)
    data = orjson.loads(codec.encode_event(event))
    return HistoryEntry(version=number, type=codec.event_type(event), at=at, data=data)


def _versions(now: int, events: Iterable[e.Event]) -> list[int]:
    """The versions of its saga that a task ran, in that order."""
    moves = [event for event in events if isinstance(event, e.TaskMoved)]
    return [*(move.origin for move in moves), now]
