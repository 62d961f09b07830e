"""A task's whole history, as the machine's events, read page by page."""

from __future__ import annotations

from headway.coordinator.errors import Refusal
from headway.coordinator.records import Loaded
from headway.coordinator.store import Store
from headway.sagas import codec
from headway.sagas.events import Event

PAGE = 1_000  # events that are read at once


async def history_of(store: Store, loaded: Loaded) -> list[Event]:
    """The events that led to the task as it was read, and none that came later; Refusal (409) if
    they are not all there."""
    events: list[Event] = []
    while len(events) < loaded.task.version:
        limit = min(PAGE, loaded.task.version - len(events))
        rows = await store.fetch("history", loaded.id, len(events), limit)
        if not rows:
            raise Refusal("the task's history is not whole; it cannot be replayed", 409)
        for row in rows:
            at = round(row["at"].timestamp() * 1000)
            events.append(codec.decode_event(row["type"], at, row["data"]))
    return events
