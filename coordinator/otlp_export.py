"""Sends what a coordinator tells: the spans that tasks owe, its batches' spans, records, numbers.

Spans of tasks are sent at least once, see `span_sending`. Batches' spans and records are sent at
most once and may be lost with the process; numbers are cumulative, so a request that is lost is
made good by the next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar, Protocol
from uuid import UUID

from headway.agents import telemetry as t
from headway.coordinator.backlog import Backlog
from headway.coordinator.metrics import Metrics
from headway.coordinator.otlp import NotTaken, Sender, resource
from headway.coordinator.otlp_numbers import logs_request, metrics_request
from headway.coordinator.otlp_settings import (
    Signal,
    endpoint_of,
    metrics_interval_s,
    resource_of,
    spans_delay_s,
    wants_payloads,
)
from headway.coordinator.otlp_spans import encoded_batch, trace_request
from headway.coordinator.recent_histories import RecentHistories
from headway.coordinator.span_sending import Debts, SpanSending
from headway.coordinator.spans import Batch
from headway.coordinator.state_records import Record

_LOG = logging.getLogger(__name__)

AT_ONCE = 512  # spans or records in one request


class Told(Protocol):
    """What is to be sent."""

    metrics: Metrics
    histories: RecentHistories
    batches: Backlog[Batch] | None
    records: Backlog[Record] | None


class Export:
    ADOPT_EVERY_S: ClassVar = 60.0
    RECORDS_EVERY_S: ClassVar = 1.0

    def __init__(
        self,
        told: Told,
        store: Debts,
        coordinator: UUID,
        environ: Mapping[str, str],
        clock: Callable[[], int],
    ) -> None:
        """`clock` gives ms since 1970."""
        self._told = told
        self._clock = clock
        self._since = clock()
        self.metrics_every_s = metrics_interval_s(environ)
        self.spans_every_s = spans_delay_s(environ)
        named = {**resource_of(environ), t.SERVICE_VERSION: version("headway")}
        self._tasks = resource(named)  # a task's spans are the same, whoever sends them
        self._mine = resource({**named, t.SERVICE_INSTANCE_ID: str(coordinator)})
        self._senders = {
            signal: _Steady(signal, Sender(endpoint))
            for signal in ("traces", "metrics", "logs")
            if (endpoint := endpoint_of(signal, environ)) is not None
        }
        self._sending = SpanSending(
            store, self._send_spans, told.histories, clock, payloads=wants_payloads(environ)
        )

    async def send_all(self) -> None:
        """Everything, once."""
        await self.send_spans()
        await self.send_records()
        await self.send_metrics()

    async def send_spans(self) -> None:
        """What tasks owe, and what batches left."""
        if "traces" not in self._senders or self._told.batches is None:
            return
        await self._sending.step()
        while batches := self._told.batches.look(AT_ONCE):
            body = trace_request(self._mine, map(encoded_batch, batches))
            if not await self._senders["traces"].send(body, len(batches)):
                return
            self._told.batches.gone(len(batches))

    async def adopt_spans(self) -> None:
        """Take over what coordinators of an earlier release left."""
        if "traces" in self._senders:
            await self._sending.adopt()

    async def _send_spans(self, spans: Sequence[bytes], tasks: int) -> None:
        """With them go the batches' that wait, which saves a request."""
        assert self._told.batches is not None
        body, batches = trace_request(self._tasks, spans), self._told.batches.look(AT_ONCE)
        if batches:
            body += trace_request(self._mine, map(encoded_batch, batches))
        await self._senders["traces"].insist(body, tasks)
        self._told.batches.gone(len(batches))

    async def send_records(self) -> None:
        """The records that wait."""
        if "logs" not in self._senders or self._told.records is None:
            return
        while records := self._told.records.look(AT_ONCE):
            body = logs_request(self._mine, records)
            if not await self._senders["logs"].send(body, len(records)):
                return
            self._told.records.gone(len(records))

    async def send_metrics(self) -> None:
        """All numbers as they are now."""
        if "metrics" in self._senders:
            body = metrics_request(self._mine, self._told.metrics, self._since, self._clock())
            await self._senders["metrics"].send(body, 1)


class _Steady:
    """A sender that complains once, however long the collector stays away."""

    def __init__(self, signal: Signal, sender: Sender) -> None:
        self._signal = signal
        self._sender = sender
        self._away = False

    async def insist(self, body: bytes, count: int) -> None:
        """NotTaken if it was not."""
        try:
            await self._sender.send(body, count)
        except NotTaken as error:
            if not self._away:
                _LOG.warning(
                    "the collector of %s is away; nothing waits for it: %s", self._signal, error
                )
            self._away = True
            raise
        self._away = False

    async def send(self, body: bytes, count: int) -> bool:
        """Whether it was taken."""
        try:
            await self.insist(body, count)
        except NotTaken:
            return False
        return True
