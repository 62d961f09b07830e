"""Metrics and records as the messages of OpenTelemetry's protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from headway.coordinator.instruments import Instrument
from headway.coordinator.metrics import Distribution, Labels, Metrics, Reading
from headway.coordinator.otlp import KINDS_MAX, NS_PER_MS, attribute, key_values, part, scope
from headway.coordinator.state_records import SEVERITIES, Record
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

CUMULATIVE = metrics_pb2.AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def metrics_request(who: Resource, metrics: Metrics, since_ms: int, now_ms: int) -> bytes:
    """All numbers as they are now; counters and histograms count since `since_ms`."""
    span = since_ms * NS_PER_MS, now_ms * NS_PER_MS
    scoped = metrics_pb2.ScopeMetrics(
        scope=scope(), metrics=[_metric(reading, *span) for reading in metrics.read()]
    )
    found = metrics_pb2.ResourceMetrics(resource=who, scope_metrics=[scoped])
    return bytes(ExportMetricsServiceRequest(resource_metrics=[found]).SerializeToString())


def _metric(reading: Reading, since: int, now: int) -> metrics_pb2.Metric:
    each = reading.instrument
    metric = metrics_pb2.Metric(name=each.name, unit=each.unit, description=each.description)
    numbers: list[metrics_pb2.NumberDataPoint] = []
    distributions: list[metrics_pb2.HistogramDataPoint] = []
    for labels, value in reading.series.items():
        if isinstance(value, Distribution):
            distributions.append(_distribution(each, labels, value, since, now))
        else:
            numbers.append(
                metrics_pb2.NumberDataPoint(
                    attributes=_attributes(each, labels),
                    start_time_unix_nano=0 if each.kind == "gauge" else since,
                    time_unix_nano=now,
                    as_double=value,
                )
            )
    match each.kind:
        case "histogram":
            found = metrics_pb2.Histogram(
                data_points=distributions, aggregation_temporality=CUMULATIVE
            )
            metric.histogram.CopyFrom(found)
        case "counter":
            counted = metrics_pb2.Sum(
                data_points=numbers, aggregation_temporality=CUMULATIVE, is_monotonic=True
            )
            metric.sum.CopyFrom(counted)
        case "gauge":
            metric.gauge.CopyFrom(metrics_pb2.Gauge(data_points=numbers))
    return metric


def _distribution(
    each: Instrument, labels: Labels, value: Distribution, since: int, now: int
) -> metrics_pb2.HistogramDataPoint:
    return metrics_pb2.HistogramDataPoint(
        attributes=_attributes(each, labels),
        start_time_unix_nano=since,
        time_unix_nano=now,
        count=value.count,
        sum=value.total,
        bucket_counts=value.buckets,
        explicit_bounds=each.bounds,
    )


def _attributes(each: Instrument, labels: Labels) -> list[KeyValue]:
    return key_values(dict(zip(each.attributes, labels, strict=True)))


def logs_request(who: Resource, records: Iterable[Record]) -> bytes:
    """These records as one request."""
    parts = [part(2, _encoded(each)) for each in records]
    scoped = part(1, scope().SerializeToString()) + b"".join(parts)
    return part(1, part(1, who.SerializeToString()) + part(2, scoped))


def _encoded(record: Record) -> bytes:
    """A record's message, put together as a span's is."""
    at = (record.at * NS_PER_MS).to_bytes(8, "little")
    return b"".join(
        (
            b"\x09" + at,
            b"\x59" + at,
            b"\x4a\x10" + record.trace_id,
            b"\x52\x08" + record.span_id,
            _shared(record.severity, record.body, record.attributes),
            *[attribute(6, name, value) for name, value in record.own],
        )
    )


@lru_cache(KINDS_MAX)
def _shared(severity: int, body: str, attributes: tuple[tuple[str, Any], ...]) -> bytes:
    found = logs_pb2.LogRecord(
        severity_number=logs_pb2.SeverityNumber.ValueType(severity),
        severity_text=SEVERITIES[severity],
        body=AnyValue(string_value=body),
        attributes=key_values(dict(attributes)),
    )
    return bytes(found.SerializeToString())
