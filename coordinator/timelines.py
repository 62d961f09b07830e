"""The operation `timeline`: a task's history, drawn. Changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from headway.agents.timeline_views import TimelineRequest, TimelineView
from headway.coordinator.histories import history_of
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.coordinator.timeline import timeline

Read = Callable[[UUID], Awaitable[Loaded]]


class Timelines:
    def __init__(self, store: Store, read: Read, clock: Callable[[], int]) -> None:
        """`read` gives a task as it is; `clock` ms since 1970."""
        self._store = store
        self._read = read
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {"timeline": typed(TimelineRequest, TimelineView, self.draw)}

    async def draw(self, request: TimelineRequest) -> TimelineView:
        loaded = await self._read(request.task)
        events = await history_of(self._store, loaded)
        return timeline(loaded.id, loaded.definition, events, self._clock())
