"""What the API can tell of tasks: requests in, views out. Changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from uuid import UUID

from headway.agents import views
from headway.coordinator import portraits
from headway.coordinator.errors import Refusal
from headway.coordinator.listing import Listing
from headway.coordinator.presence import Roll
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed
from headway.coordinator.settled import Settled
from headway.coordinator.store import Store

FORKS_SHOWN_MAX = 100


Explain = Callable[[Loaded], Awaitable[Mapping[str, str]]]
"""What steps wait for, where that is not their agent's answer."""


class Lookups:
    """Answers from the store, and for what ended a moment ago from memory."""

    def __init__(
        self,
        store: Store,
        settled: Settled,
        roll: Roll,
        clock: Callable[[], int],
        explain: Explain,
    ) -> None:
        self._store = store
        self._listing = Listing(store)
        self._settled = settled
        self._roll = roll
        self._clock = clock
        self._explain = explain

    def operations(self) -> dict[str, Serve]:
        return {
            "get": typed(views.GetRequest, views.TaskView, self.get),
            "list": typed(views.ListRequest, views.TaskPage, self.list),
            "history": typed(views.HistoryRequest, views.History, self.history),
        }

    async def get(self, request: views.GetRequest) -> views.TaskView:
        look = partial(self.look, request.task)
        if request.wait_s:
            loaded = await self._settled.once(request.task, look, look, request.wait_s)
        else:
            loaded = await look()
        if loaded is None:
            raise Refusal(f"there is no task {request.task}", 404)
        view = await self.show(loaded)
        if view.settled and not request.wait_s:
            rows = await self._store.fetch("forks_of_task", loaded.id, FORKS_SHOWN_MAX)
            view.forks = [row["id"] for row in rows]
        return view

    async def show(self, loaded: Loaded) -> views.TaskView:
        """A task as people see it, with what it has used if it has bounds."""
        view = portraits.task_view(loaded, self._roll.instances())
        if not view.settled:
            waits = await self._explain(loaded)
            for step in view.steps:
                step.waiting_for = waits.get(step.name, step.waiting_for)
        if loaded.manifest is not None:
            [used] = await self._store.fetch("usage_of_task", loaded.id)
            view.usage = views.UsageView(tokens=used["tokens"], cost_usd=used["cost_usd"])
        return view

    async def list(self, request: views.ListRequest) -> views.TaskPage:
        rows, cursor = await self._listing.page(request, request.cursor, request.limit)
        return views.TaskPage(tasks=[portraits.row_view(row) for row in rows], cursor=cursor)

    async def history(self, request: views.HistoryRequest) -> views.History:
        rows = await self._store.fetch("history", request.task, request.after, request.limit + 1)
        if not rows and request.after == 0:
            raise Refusal(f"there is no task {request.task}", 404)
        entries = [portraits.history_entry(row) for row in rows[: request.limit]]
        return views.History(task=request.task, entries=entries, more=len(rows) > request.limit)

    async def look(self, task: UUID) -> Loaded | None:
        """The task as it is now, if there is one."""
        just_ended = self._settled.look(task, self._clock())
        return just_ended or (await self._store.read([task])).get(task)
