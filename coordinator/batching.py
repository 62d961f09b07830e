"""One act on many tasks: those that a filter means, a page at a time, each decided by itself.

Always holds: a dry run decides as the engine would, on the tasks as they are at the moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from headway.agents.batch_views import BatchAction, BatchRefusal, BatchReply, BatchRequest
from headway.agents.views import TaskFilter, TaskStatus
from headway.coordinator.asking import Ask
from headway.coordinator.decisions import decide
from headway.coordinator.errors import CoordinatorError, Refusal
from headway.coordinator.intake import Item, nobody_waits
from headway.coordinator.interventions import check_words
from headway.coordinator.listing import Listing
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.sagas import inputs as i

WITHIN_S = 8.0  # for one page, so that the answer is there before its asker gives up

STATUSES: dict[BatchAction, list[TaskStatus]] = {
    "cancel": ["running", "parked"],
    "retry": ["parked", "failed_to_compensate"],
    "resume": ["parked", "failed_to_compensate"],
}
"""Which tasks an action can be for."""

NARROW_IT = (
    "filter: narrow it by a saga, an agent, an owner, statuses, attributes or a time; with none of "
    "these it means every task there is"
)
UNKNOWN = "nobody knows yet whether it was done; ask again"


class Batching:
    def __init__(self, store: Store, ask: Ask, clock: Callable[[], int]) -> None:
        """`ask` puts an act before the engine; `clock` is in ms since 1970."""
        self._store = store
        self._listing = Listing(store)
        self._ask = ask
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {"batch": typed(BatchRequest, BatchReply, self.act)}

    async def act(self, request: BatchRequest) -> BatchReply:
        """Do it to the next tasks, or find out to which it would be done."""
        check_words(request.by, request.reason)
        if request.filter == TaskFilter():
            raise Refusal(NARROW_IT, 422)
        wanted = request.filter
        if not wanted.status:
            wanted = wanted.model_copy(update={"status": STATUSES[request.action]})
        rows, cursor = await self._listing.page(wanted, request.cursor, request.limit)
        tasks = [row["id"] for row in rows]
        happened = _happened(request, self._clock())
        judge = self._would if request.dry_run else self._do
        refused = await judge(tasks, happened)
        kept = {each.task for each in refused}
        done = [task for task in tasks if task not in kept]
        return BatchReply(
            matched=len(tasks), done=len(done), tasks=done, refused=refused, cursor=cursor
        )

    async def _would(self, tasks: Sequence[UUID], happened: i.Input) -> list[BatchRefusal]:
        """Those of the tasks to which it would not be done."""
        found = await self._store.read(tasks)
        refused = []
        for task in tasks:
            item = Item(task, happened, nobody_waits)
            [(_, refusal, _)] = decide([item], found.get(task), {}, _unasked).answers
            if refusal is not None:
                refused.append(_refusal(task, refusal))
        return refused

    async def _do(self, tasks: Sequence[UUID], happened: i.Input) -> list[BatchRefusal]:
        """Those of the tasks to which it was not done; all at once, so that they are committed
        together."""
        asked = [self._ask(task, happened) for task in tasks]
        if asked:
            await asyncio.wait(asked, timeout=WITHIN_S)
        refused = []
        for task, answered in zip(tasks, asked, strict=True):
            if not answered.done():
                refused.append(BatchRefusal(task=task, reason=UNKNOWN, code=503))
            elif answered.result().refusal is not None:
                refused.append(_refusal(task, answered.result().refusal))
        return refused


def _happened(request: BatchRequest, now: int) -> i.Input:
    if request.action == "cancel":
        return i.Cancel(now, request.by, request.reason)
    return i.RetryStuck(now, request.by, request.reason)


def _refusal(task: UUID, error: CoordinatorError | None) -> BatchRefusal:
    code = error.code if isinstance(error, Refusal) else 503
    return BatchRefusal(task=task, reason=str(error), code=code)


def _unasked(*_: Any) -> None:
    """Nothing of what a batch does has an input to be checked."""
