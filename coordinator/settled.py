"""Tasks that just ended or parked, and who waits for that.

Always holds: an ended task is shown from here for KEPT_MS at most. Ended states are final; only an
incident, something that came late, can be missing from the report for that long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from uuid import UUID

from headway.agents.news import wait_for
from headway.coordinator.decisions import Decision
from headway.coordinator.records import Loaded

KEPT_MAX = 256  # tasks
KEPT_MS = 1_000

News = Callable[[UUID], AbstractAsyncContextManager[asyncio.Event]]
Look = Callable[[], Awaitable[Loaded | None]]


class Settled:
    def __init__(self, news: News) -> None:
        """`news` gives an event that is set when a peer says that a task is settled."""
        self._news = news
        self._ended: OrderedDict[UUID, tuple[Loaded, int]] = OrderedDict()  # oldest first
        self._waiting: dict[UUID, dict[asyncio.Event, None]] = {}
        self._closed = False

    def close(self) -> None:
        """Let nobody wait any more: this coordinator leaves."""
        self._closed = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    def observe(self, decisions: Sequence[Decision]) -> None:
        """This coordinator committed these just now."""
        for decision in decisions:
            change, after = decision.change, decision.after
            if change is None or after is None:
                continue
            if after.task.ended or after.task.parked:
                self.keep(after, change.at)

    def keep(self, task: Loaded, now_ms: int) -> None:
        """This task ended or parked just now."""
        if task.task.ended and task.parent is None:  # a child's success may yet be undone
            self._ended[task.id] = task, now_ms
            self._ended.move_to_end(task.id)
            if len(self._ended) > KEPT_MAX:
                self._ended.popitem(last=False)
        for event in self._waiting.get(task.id, ()):
            event.set()

    def look(self, task: UUID, now_ms: int) -> Loaded | None:
        """The task, if this coordinator ended it a moment ago."""
        loaded, at = self._ended.get(task, (None, 0))
        return loaded if 0 <= now_ms - at < KEPT_MS else None

    async def once(self, task: UUID, begin: Look, look: Look, wait_s: float) -> Loaded | None:
        """The task once it is settled, or as it is after `wait_s` seconds or when this coordinator
        leaves. `begin` is the first look at it, `look` the last."""
        async with self.coming(task) as news:
            loaded = await begin()
            if loaded is not None and (loaded.task.ended or loaded.task.parked):
                return loaded
            await wait_for(news, wait_s)
        return await look()

    @asynccontextmanager
    async def coming(self, task: UUID) -> AsyncIterator[asyncio.Event]:
        """An event that is set once the task is settled, unless the news is lost, or when this
        coordinator leaves."""
        async with self._news(task) as event:
            self._waiting.setdefault(task, {})[event] = None
            if self._closed:
                event.set()
            try:
                yield event
            finally:
                left = self._waiting[task]
                left.pop(event, None)
                if not left:
                    del self._waiting[task]
