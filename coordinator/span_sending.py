"""Sends the spans that tasks owe to a collector.

At-least-once: what the tasks of a commit owe is a row in PostgreSQL, written in the commit that
makes it due and removed after the collector has confirmed. If a coordinator dies in between, a peer
sends the same spans, under the same ids, once the lease on the row is over. A collector that is
away costs nothing but those rows, and those for KEPT_MS at most.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import asyncpg
import orjson
from headway.coordinator.otlp import NotTaken
from headway.coordinator.otlp_spans import encoded
from headway.coordinator.recent_histories import Known, RecentHistories
from headway.coordinator.records import trace_in
from headway.coordinator.span_debts import asked, milliseconds
from headway.coordinator.span_forms import Forms
from headway.coordinator.spans import Entry, Traced, spans
from headway.sagas import codec
from headway.sagas.definition import Definition
from headway.sagas.events import Event

_LOG = logging.getLogger(__name__)

TASKS_MAX = 1_024  # in one request
TASKS_AT_ONCE = 64  # then others have their turn
ROWS_MAX = 256  # that are claimed at once
LEASE_MS = 30_000  # longer than a collector is waited for
KEPT_MS = 86_400_000  # after which a collector that stayed away gets no more of what it missed
DROPPED_MAX = 1_000  # rows at once
PAUSE_FIRST_S = 1.0
PAUSE_MAX_S = 30.0  # between two tries, while the collector is away

Send = Callable[[Sequence[bytes], int], Awaitable[None]]
"""Encoded spans, and of how many tasks."""


class Sagas(Protocol):
    """Where definitions are kept."""

    async def definition(self, name: str, version: int) -> Definition | None: ...


class Debts(Protocol):
    """The store, as far as this needs it."""

    @property
    def sagas(self) -> Sagas: ...
    async def fetch(self, name: str, *arguments: Any) -> list[asyncpg.Record]: ...


class Owed(NamedTuple):
    """What of a task's history from version `read` to `version` makes due."""

    task: UUID
    read: int
    version: int


class SpanSending:
    def __init__(
        self,
        store: Debts,
        send: Send,
        recent: RecentHistories,
        clock: Callable[[], int],
        *,
        payloads: bool,
    ) -> None:
        """`send` raises NotTaken if it is to be tried again; `clock` gives ms since 1970."""
        self._store = store
        self._send = send
        self._recent = recent
        self._clock = clock
        self._payloads = payloads
        self._forms = Forms()
        self._pause_s = 0.0
        self._not_before = 0.0  # monotonic
        self._under_way: asyncio.Task[None] | None = None

    async def step(self) -> None:
        """Send all that is owed, unless the collector is away. What is under way when the caller is
        cancelled goes on, and whoever comes next waits for it."""
        if self._under_way is not None:
            await asyncio.wait({self._under_way})
        self._under_way = asyncio.create_task(self._send_all())
        self._under_way.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(self._under_way)

    async def _send_all(self) -> None:
        if time.monotonic() < self._not_before:
            return
        while rows := await self._store.fetch("claim_spans", self._clock(), LEASE_MS, ROWS_MAX):
            for some in _portions(rows):
                if not await self._pay([row["id"] for row in some], _owed(some)):
                    return
            if len(rows) < ROWS_MAX:
                return

    async def adopt(self) -> None:
        """Take over what coordinators of an earlier release owe."""
        await self._store.fetch("adopt_spans", self._clock())

    async def _pay(self, rows: Sequence[int], owed: Sequence[Owed]) -> bool:
        """Whether the collector took them."""
        known = [self._recent.look(*each) for each in owed]
        away = [each for each, here in zip(owed, known, strict=True) if here is None]
        found = await self._stored(away)
        tasks = [here or found.get(each) for each, here in zip(owed, known, strict=True)]
        made = await self._spans([each for each in tasks if each is not None])
        try:
            if made:
                await self._send(made, len(owed))
        except NotTaken:
            self._pause_s = min(PAUSE_MAX_S, 2 * self._pause_s or PAUSE_FIRST_S)
            self._not_before = time.monotonic() + self._pause_s
            await self._give_up_old()
            return False
        self._pause_s = 0.0
        await self._store.fetch("spans_sent", list(rows))
        for each in owed:
            self._recent.settle(each.task)
        return True

    async def _stored(self, owed: Sequence[Owed]) -> dict[Owed, Known]:
        """What is owed, as it is stored."""
        if not owed:
            return {}
        versions: dict[UUID, int] = {}
        for each in owed:
            versions[each.task] = max(each.version, versions.get(each.task, 0))
        rows = await self._store.fetch("span_tasks", list(versions))
        tasks = {row["id"]: await self._traced(row) for row in rows}
        events = await self._store.fetch("span_histories", list(versions), list(versions.values()))
        histories = {task: list(group) for task, group in groupby(events, itemgetter("task_id"))}
        found: dict[Owed, Known] = {}
        for each in owed:
            traced, history = tasks.get(each.task), histories.get(each.task, ())
            if traced is None:
                continue
            try:
                told = [_event(row) for row in history if row["version"] <= each.version]
            except Exception:
                _LOG.exception("the history of task %s cannot be read; left out", each.task)
                continue
            found[each] = Known(traced, told, sum(row["version"] <= each.read for row in history))
        return found

    async def _traced(self, row: asyncpg.Record) -> Traced | None:
        definition = await self._store.sagas.definition(row["saga"], row["saga_version"])
        if definition is None:
            return None
        created_at = milliseconds(row["created_at"])
        trace = trace_in(row["trace"])
        return Traced(
            row["id"], definition, trace, row["is_child"], row["input_digest"], created_at
        )

    async def _spans(self, tasks: Sequence[Known]) -> list[bytes]:
        ids = [each.task.id for each in tasks]
        entries = await self._store.fetch("span_journals", ids, self._payloads)
        by_task = groupby(entries, itemgetter("task_id"))
        journals = {task: [_entry(row) for row in group] for task, group in by_task}
        found: list[bytes] = []
        for place, each in enumerate(tasks, 1):
            if place % TASKS_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                found.append(
                    self._encoded(each, journals.get(each.task.id, ()) if journals else ())
                )
            except Exception:
                _LOG.exception("the spans of task %s cannot be made; left out", each.task.id)
        return found

    def _encoded(self, known: Known, journal: Sequence[Entry]) -> bytes:
        task, history, read = known
        sent = asked(history[:read], task.created_at)
        due = history[: asked(history, task.created_at)]
        if journal:
            return encoded(spans(task, due, journal, sent))
        return self._forms.encoded(task, due, sent)

    async def _give_up_old(self) -> None:
        rows = await self._store.fetch("drop_spans", self._clock(), KEPT_MS, DROPPED_MAX)
        if rows[0]["count"]:
            _LOG.error(
                "%d tasks will have no spans: the collector is away for too long", rows[0]["count"]
            )


def _portions(rows: Sequence[asyncpg.Record]) -> Iterator[list[asyncpg.Record]]:
    """Rows of TASKS_MAX tasks in all, or a single one of more."""
    portion: list[asyncpg.Record] = []
    tasks = 0
    for row in rows:
        if portion and tasks + len(row["tasks"]) > TASKS_MAX:
            yield portion
            portion, tasks = [], 0
        portion.append(row)
        tasks += len(row["tasks"])
    if portion:
        yield portion


def _owed(rows: Sequence[asyncpg.Record]) -> list[Owed]:
    return [
        Owed(*each)
        for row in rows
        for each in zip(row["tasks"], row["reads"], row["versions"], strict=True)
    ]


def _event(row: asyncpg.Record) -> Event:
    return codec.decode_event(row["type"], round(row["at"].timestamp() * 1000), row["data"])


def _entry(row: asyncpg.Record) -> Entry:
    return Entry(
        *(row["step"], row["phase"], row["kind"], row["key"], row["tool"]),
        round(row["at"].timestamp() * 1000),
        orjson.loads(row["meta"]),
        None if row["data"] is None else bytes(row["data"]).decode(),
    )
