"""Spans, records and numbers as official parsers read them."""

from __future__ import annotations

from harness.collector import Collector, plain
from headway.agents import telemetry as t
from headway.coordinator.metrics import Metrics
from headway.coordinator.otlp import resource
from headway.coordinator.otlp_numbers import logs_request, metrics_request
from headway.coordinator.otlp_spans import encoded, trace_request
from headway.coordinator.spans import CONSUMER, Link, Moment, Span
from headway.coordinator.state_records import WARN, Record

TRACE, OTHER = bytes(range(16)), bytes(range(16, 32))
ONE, TWO, THREE = bytes([1] * 8), bytes([2] * 8), bytes([3] * 8)
AT = 1_800_000_000_123


def test_a_span_is_read_as_it_was_meant():
    whole = Span(
        *(TRACE, ONE, TWO, "work", CONSUMER, AT, AT + 5),
        {"headway.step": "a", "headway.attempt": 3, "x.ok": True, "x.share": 0.5},
        {"headway.worker": "w" * 300},
        [Moment(AT + 1, "claimed", {"headway.epoch": 2})],
        [Link(OTHER, THREE, "submitter")] * 2,
        "Broken",
    )
    root = Span(TRACE, TWO, b"", "all", CONSUMER, AT, AT, {})
    collector = Collector()
    collector.take(
        "/v1/traces", trace_request(resource({"service.name": "s"}), [encoded([whole, root])])
    )
    [first, second] = collector.spans
    span = first.span
    assert (span.trace_id, span.span_id, span.parent_span_id) == (TRACE, ONE, TWO)
    assert (span.name, span.kind) == ("work", CONSUMER)
    assert span.start_time_unix_nano == AT * 1_000_000
    assert span.end_time_unix_nano == (AT + 5) * 1_000_000
    assert first.attributes == {
        "headway.step": "a",
        "headway.attempt": 3,
        "x.ok": True,
        "x.share": 0.5,
        "headway.worker": "w" * 300,
    }
    assert [(event.name, plain(event.attributes)) for event in span.events] == [
        ("claimed", {"headway.epoch": 2})
    ]
    assert [(link.trace_id, link.span_id) for link in span.links] == [(OTHER, THREE)] * 2
    assert plain(span.links[0].attributes) == {"headway.link": "submitter"}
    assert (span.status.code, span.status.message) == (2, "Broken")
    assert first.resource == {"service.name": "s"}
    assert not second.span.parent_span_id
    assert second.span.status.code == 0


def test_a_record_is_read_as_it_was_meant():
    record = Record(
        *(AT, WARN, "task parked", (("headway.saga", "s"),)),
        *((("k", "vü"), ("n", 7), ("e", "")), TRACE, ONE),
    )
    collector = Collector()
    collector.take("/v1/logs", logs_request(resource({}), [record] * 200))
    read = collector.records[-1]
    assert len(collector.records) == 200
    assert (read.time_unix_nano, read.severity_number, read.severity_text) == (
        *(AT * 1_000_000, WARN, "WARN"),
    )
    assert (read.trace_id, read.span_id) == (TRACE, ONE)
    assert read.body.string_value == "task parked"
    assert plain(read.attributes) == {"headway.saga": "s", "k": "vü", "n": 7, "e": ""}


def test_numbers_are_read_as_they_were_meant():
    metrics = Metrics()
    metrics.add(t.TASKS_SUBMITTED, 3, "s")
    metrics.record(t.COMMIT_ITEMS, [5])
    metrics.set(t.AGENTS, {(): 2})
    collector = Collector()
    collector.take("/v1/metrics", metrics_request(resource({}), metrics, AT, AT + 9))
    counted, spread, gauge = collector.metrics
    [point] = counted.sum.data_points
    assert counted.sum.is_monotonic
    assert (point.as_double, plain(point.attributes)) == (3, {"headway.saga": "s"})
    assert point.start_time_unix_nano == AT * 1_000_000
    [bucketed] = spread.histogram.data_points
    assert (bucketed.count, bucketed.sum) == (1, 5)
    assert list(bucketed.bucket_counts).index(1) == list(bucketed.explicit_bounds).index(8)
    assert gauge.gauge.data_points[0].as_double == 2
