"""The names of everything measured, in one table, and the instruments for them."""

from __future__ import annotations

from opentelemetry import metrics

TRANSITIONS = "headway.transitions"
COMMIT_MS = "headway.commit.duration"
BATCH_ITEMS = "headway.batch.items"

_METER = metrics.get_meter("headway.coordinator")

transitions = _METER.create_counter(TRANSITIONS, "1", "items that were decided and committed")
commit_ms = _METER.create_histogram(COMMIT_MS, "ms", "load, decide and commit of one batch")
batch_items = _METER.create_histogram(BATCH_ITEMS, "1", "items in one batch")
