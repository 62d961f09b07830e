"""The one list of everything that waits for a person: parked tasks, approvals, calls of tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import asyncpg
import orjson
from headway.agents import views
from headway.agents.identity import invocation_id, operation_id
from headway.coordinator import portraits
from headway.coordinator.listing import read_cursor
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store

Calls = Callable[[views.WaitingRequest], Awaitable[list[views.WaitingView]]]


class WaitingList:
    def __init__(self, store: Store, calls: Calls) -> None:
        """`calls` gives the calls of tools that wait for approval, of those that are asked for."""
        self._store = store
        self._calls = calls

    def operations(self) -> dict[str, Serve]:
        return {"parked": typed(views.WaitingRequest, views.WaitingPage, self.page)}

    async def page(self, request: views.WaitingRequest) -> views.WaitingPage:
        """Calls that wait for approval first, then tasks, newest first, each with the calls of
        which nobody knows the end."""
        cursor = read_cursor(request.cursor)
        limit = request.limit + 1
        rows = await self._store.fetch(
            "list_waiting_tasks", cursor, request.saga, limit, request.owner, request.task
        )
        ids = [row["id"] for row in rows[: request.limit]]
        waiting = [] if cursor else await self._calls(request)
        tasks = await self._store.read(ids)
        unsettled = await self._unsettled(ids)
        for task in filter(tasks.__contains__, ids):  # the others were removed meanwhile
            found = portraits.waiting_views(tasks[task])
            waiting += found
            for parked in (each for each in found if each.kind != "approval"):
                waiting += [_call_of(parked, row) for row in unsettled.get(task, ())]
        more = len(rows) > request.limit
        return views.WaitingPage(waiting=waiting, cursor=str(ids[-1]) if more else None)

    async def _unsettled(self, tasks: Sequence[UUID]) -> dict[UUID, list[asyncpg.Record]]:
        found: dict[UUID, list[asyncpg.Record]] = {}
        if tasks:
            for row in await self._store.fetch("unsettled_intents", list(tasks)):
                found.setdefault(row["task_id"], []).append(row)
        return found


def _call_of(parked: views.WaitingView, row: asyncpg.Record) -> views.WaitingView:
    """A call of which nobody knows the end, in a task that is parked."""
    operation = operation_id(row["task_id"], row["step"], row["phase"])
    return views.WaitingView(
        task=row["task_id"],
        saga=parked.saga,
        kind="unsettled",
        step=row["step"],
        phase=row["phase"],
        reason=f"nobody knows whether the call of {row['tool']!r} happened",
        since=row["at"],
        actions=["settle", *(each for each in parked.actions if each == "cancel")],
        context=row["arguments_digest"][:16],
        invocation=invocation_id(operation, row["key"]),
        key=row["key"],
        tool=row["tool"],
        details=None if row["data"] is None else orjson.loads(row["data"]),
    )
