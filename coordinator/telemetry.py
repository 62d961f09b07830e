"""What a coordinator tells of itself: its numbers, its records, its batches; and how tasks are
traced.

Always holds: nothing that is decided or committed waits for any of this, and nothing fails by it.
Without OTEL_* variables nothing is sent, and what sends is not even loaded; the numbers are counted
in any case, for `/metrics`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from headway.agents import telemetry as t
from headway.agents.overview_views import OverviewRequest
from headway.coordinator.backlog import Backlog
from headway.coordinator.counting import Counting
from headway.coordinator.decisions import Decision
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.journal_rows import Change
from headway.coordinator.metrics import Metrics
from headway.coordinator.observing import Observe, harmless
from headway.coordinator.otlp_settings import endpoint_of, sampler_of
from headway.coordinator.overview import Overview
from headway.coordinator.prometheus import text_of
from headway.coordinator.recent_histories import RecentHistories
from headway.coordinator.repeating import forever
from headway.coordinator.spans import Batch
from headway.coordinator.state_records import Record, line_of, record_of, records_of
from headway.coordinator.store import Store

LINKS_MAX = 128  # of a batch's span
BATCHES_KEPT = 4_096  # spans of batches that wait for a collector
RECORDS_KEPT = 16_384
END_S = 1.0  # for what is left to be sent when a coordinator stops

_EXPORT = "headway.coordinator.otlp_export"
_RECORDS = logging.getLogger(t.RECORDS_LOGGER)


class Telemetry:
    """Of one coordinator. `clock` gives ms since 1970."""

    def __init__(
        self, coordinator: UUID, environ: Mapping[str, str], clock: Callable[[], int]
    ) -> None:
        self.metrics = Metrics()
        self._coordinator = coordinator
        self._rng = random.Random(coordinator.int)  # noqa: S311 - for ids; the system takes longer
        self._environ = environ
        self._clock = clock
        self._counting = counting = Counting(self.metrics)
        self.count = counting.count
        self._export: Any = None
        traced = endpoint_of("traces", environ) is not None
        recorded = endpoint_of("logs", environ) is not None
        measured = endpoint_of("metrics", environ) is not None
        self._sends = traced or recorded or measured
        self.sample = sampler_of(environ) if traced else None
        self.histories = RecentHistories()
        self.batches = Backlog[Batch](BATCHES_KEPT, self._dropping("spans")) if traced else None
        self.records = Backlog[Record](RECORDS_KEPT, self._dropping("logs")) if recorded else None
        self._lines = environ.get(t.LOG_FORMAT, "").lower() == t.JSON
        self.journaled = harmless(self._journaled)
        self.measure = harmless(self._measure)

    @property
    def listeners(self) -> Sequence[Observe]:
        """Who wants to know what the engine committed."""
        listeners: list[Observe] = [self._counting.commits]
        if self._recording:
            listeners.append(self._record)
        return listeners

    @property
    def _recording(self) -> bool:
        return self._lines or self.records is not None

    def loops(self, store: Store, overview: Overview) -> list[Coroutine[Any, Any, None]]:
        """What sends, for as long as it runs."""
        if not self._sends:
            return []
        self._export = export = importlib.import_module(_EXPORT).Export(
            self, store, self._coordinator, self._environ, self._clock
        )

        async def send_numbers() -> None:
            await self.look(overview)
            await export.send_metrics()

        return [
            forever("traces", export.send_spans, export.spans_every_s),
            forever("former traces", export.adopt_spans, export.ADOPT_EVERY_S),
            forever("records", export.send_records, export.RECORDS_EVERY_S),
            forever("metrics", send_numbers, export.metrics_every_s),
        ]

    async def end(self) -> None:
        """Send what is left, in END_S at most."""
        if self._export is not None:
            with suppress(CoordinatorError, TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._export.send_all()

    async def look(self, overview: Overview) -> None:
        """Take a look at what there is; CoordinatorError if that cannot be had now."""
        self._counting.look(await overview.show(OverviewRequest()))

    async def text(self, overview: Overview) -> str:
        """The body of `/metrics`. While its servers are away, what there is is as it was last."""
        with suppress(CoordinatorError):
            await self.look(overview)
        return text_of(self.metrics)

    def _measure(self, items: int, took_s: float, decisions: Sequence[Decision]) -> None:
        """One batch was committed: `items` in `took_s` seconds, until now."""
        self._counting.batch(items, took_s)
        if self.batches is None:
            return
        tasks: list[bytes] = []
        for decision in decisions:
            change, after = decision.change, decision.after
            if change is not None and after is not None and after.trace.sampled:
                tasks.append(change.id.bytes)
                self.histories.take(change, after)
        if tasks:
            now = self._clock()
            began = now - round(took_s * 1000)
            batch = Batch(self._rng.randbytes(16), began, now, items, len(tasks), tasks[:LINKS_MAX])
            self.batches.put(batch)

    def _journaled(self, changes: Sequence[Change]) -> None:
        """These journals were moved on."""
        self._counting.journaled(changes)
        if self._recording:
            now = self._clock()
            for change in changes:
                for record in records_of(change, now):
                    self._keep(record)

    def _record(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            record = record_of(decision)
            if record is not None:
                self._keep(record)

    def _keep(self, record: Record) -> None:
        if self.records is not None:
            self.records.put(record)
        if self._lines:
            _RECORDS.info(line_of(record))

    def _dropping(self, signal: str) -> Callable[[], None]:
        return lambda: self.metrics.add(t.SPANS_DROPPED, 1, signal)
