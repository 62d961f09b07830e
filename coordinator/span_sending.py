"""Sends the spans that tasks owe to a collector.

At-least-once: what is owed is a row in PostgreSQL, written in the commit that makes it due and
removed after the collector has confirmed. If a coordinator dies in between, a peer sends the same
spans, under the same ids, once the lease on the row is over. A collector that is away costs nothing
but those rows, and those for KEPT_MS at most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import asyncpg
import orjson
from headway.coordinator.otlp import NotTaken
from headway.coordinator.recent_histories import Known, RecentHistories
from headway.coordinator.records import trace_in
from headway.coordinator.spans import Entry, Span, Traced, spans
from headway.sagas import codec
from headway.sagas.definition import Definition
from headway.sagas.events import Event
from headway.sagas.task import ENDED

_LOG = logging.getLogger(__name__)

TASKS_MAX = 256  # in one request
LEASE_MS = 30_000  # longer than a collector is waited for
KEPT_MS = 86_400_000  # after which a collector that stayed away gets no more of what it missed
DROPPED_MAX = 10_000  # at once
PAUSE_FIRST_S = 1.0
PAUSE_MAX_S = 30.0  # between two tries, while the collector is away

Send = Callable[[Sequence[Span]], Awaitable[None]]


class Sagas(Protocol):
    """Where definitions are kept."""

    async def definition(self, name: str, version: int) -> Definition | None: ...


class Debts(Protocol):
    """The store, as far as this needs it."""

    @property
    def sagas(self) -> Sagas: ...
    async def fetch(self, name: str, *arguments: Any) -> list[asyncpg.Record]: ...


class Owed(NamedTuple):
    """The spans of a task after version `sent` and up to `version`."""

    task: UUID
    version: int
    sent: int


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
        self._pause_s = 0.0
        self._not_before = 0.0  # monotonic

    async def step(self) -> None:
        """Send all that is owed, unless the collector is away."""
        if time.monotonic() < self._not_before:
            return
        while rows := await self._store.fetch("claim_spans", self._clock(), LEASE_MS, TASKS_MAX):
            owed = [Owed(row["task_id"], row["version"], row["sent"]) for row in rows]
            if not await self._pay(owed) or len(rows) < TASKS_MAX:
                return

    async def _pay(self, owed: Sequence[Owed]) -> bool:
        """Whether the collector took them."""
        known = {each.task: self._recent.look(*each) for each in owed}
        found = await self._known([each for each in owed if known[each.task] is None])
        tasks = {task: each or found.get(task) for task, each in known.items()}
        made = await self._spans([each for each in tasks.values() if each is not None])
        try:
            if made:
                await self._send(made)
        except NotTaken:
            self._pause_s = min(PAUSE_MAX_S, 2 * self._pause_s or PAUSE_FIRST_S)
            self._not_before = time.monotonic() + self._pause_s
            await self._give_up_old()
            return False
        self._pause_s = 0.0
        ended = [task is None or task.ended for task in tasks.values()]
        ids, versions, _ = zip(*owed, strict=True)
        await self._store.fetch("spans_sent", list(ids), list(versions), ended)
        for each, is_over in zip(owed, ended, strict=True):
            if is_over:
                self._recent.forget(each.task)
        return True

    async def _known(self, owed: Sequence[Owed]) -> dict[UUID, Known]:
        """These tasks as they are stored."""
        if not owed:
            return {}
        ids, versions = [each.task for each in owed], [each.version for each in owed]
        rows = await self._store.fetch("span_tasks", ids)
        tasks = {row["id"]: row for row in rows}
        events = await self._store.fetch("span_histories", ids, versions)
        histories = {task: list(group) for task, group in groupby(events, itemgetter("task_id"))}
        found: dict[UUID, Known] = {}
        for each in owed:
            row, history = tasks.get(each.task), histories.get(each.task, [])
            traced = None if row is None else await self._traced(row)
            if row is not None and traced is not None:
                sent = sum(event["version"] <= each.sent for event in history)
                told = [_event(event) for event in history]
                found[each.task] = Known(traced, told, sent, row["status"] in ENDED)
        return found

    async def _traced(self, row: asyncpg.Record) -> Traced | None:
        definition = await self._store.sagas.definition(row["saga"], row["saga_version"])
        if definition is None:
            return None
        trace = trace_in(row["trace"])
        return Traced(row["id"], definition, trace, row["is_child"], row["input_digest"])

    async def _spans(self, tasks: Sequence[Known]) -> list[Span]:
        ids = [each.task.id for each in tasks]
        entries = await self._store.fetch("span_journals", ids, self._payloads)
        by_task = groupby(entries, itemgetter("task_id"))
        journals = {task: [_entry(row) for row in group] for task, group in by_task}
        found: list[Span] = []
        for each in tasks:
            journal = journals.get(each.task.id, ())
            try:
                found += spans(each.task, each.history, journal, each.sent)
            except Exception:
                _LOG.exception("the spans of task %s cannot be made; left out", each.task.id)
        return found

    async def _give_up_old(self) -> None:
        rows = await self._store.fetch("drop_spans", self._clock(), KEPT_MS, DROPPED_MAX)
        if rows[0]["count"]:
            _LOG.error(
                "%d tasks will have no spans: the collector is away for too long", rows[0]["count"]
            )


def _event(row: asyncpg.Record) -> Event:
    return codec.decode_event(row["type"], round(row["at"].timestamp() * 1000), row["data"])


def _entry(row: asyncpg.Record) -> Entry:
    return Entry(
        *(row["step"], row["phase"], row["kind"], row["key"], row["tool"]),
        round(row["at"].timestamp() * 1000),
        orjson.loads(row["meta"]),
        None if row["data"] is None else bytes(row["data"]).decode(),
    )
