"""Spans as the messages of OpenTelemetry's protocol, put together by hand. Pure.

A protobuf message is its fields one after another, in any order, each with a head: its number and
kind in a byte (1: eight bytes follow, 2: a length and as many bytes follow), so what many spans
have in common is made once and what is one span's own is put beside it: making all of it anew costs
four times as much. The fields of a Span: 1 trace_id, 2 span_id, 4 parent_span_id, 7 and 8 start and
end in ns, 9 attributes, 11 events, 13 links; of a Link: 1 trace_id, 2 span_id. Ids have 16 and 8
bytes, times are fixed64.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from headway.agents import telemetry as t
from headway.agents.tracing import root_of
from headway.coordinator.otlp import KINDS_MAX, NS_PER_MS, attribute, key_values, part, scope
from headway.coordinator.spans import INTERNAL, Batch, Link, Moment, Span
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

_SAMPLED = 0x01
_HAS_REMOTE, _REMOTE = 0x100, 0x200  # of a link's flags
_TRACE_ID, _SPAN_ID, _PARENT = b"\x0a\x10", b"\x12\x08", b"\x22\x08"
_START, _END = b"\x39", b"\x41"


def trace_request(who: Resource, spans: Iterable[bytes]) -> bytes:
    """Encoded spans as a request; several requests one after another are one, too."""
    scoped = part(1, scope().SerializeToString()) + b"".join(spans)
    return part(1, part(1, who.SerializeToString()) + part(2, scoped))


def encoded(spans: Iterable[Span]) -> bytes:
    """These spans, ready for a request."""
    return b"".join([part(2, _span(span)) for span in spans])


def encoded_batch(batch: Batch) -> bytes:
    """A batch's span, ready for a request: a trace of its own, with a link to each of its tasks."""
    span = Span(
        *(batch.id, root_of(batch.id), b"", t.BATCH_SPAN, INTERNAL, batch.began, batch.ended),
        {t.MESSAGING_SYSTEM: "nats", t.MESSAGING_BATCH: batch.items, t.ITEMS: batch.changed},
    )
    head, why = _of_link("task")
    links = [b"".join((head, task, _SPAN_ID, root_of(task), why)) for task in batch.tasks]
    return part(2, _span(span) + b"".join(links))


def timestamp(ms: int) -> bytes:
    """A time in ms since 1970 as it is within a message."""
    return (ms * NS_PER_MS).to_bytes(8, "little")


def _span(span: Span) -> bytes:
    return b"".join(
        (
            _TRACE_ID,
            span.trace_id,
            _SPAN_ID,
            span.span_id,
            _PARENT + span.parent if span.parent else b"",
            _START,
            timestamp(span.began),
            _END,
            timestamp(span.ended),
            _shared(span.name, span.kind, tuple(span.attributes.items()), span.error),
            _own(span) if span.own or span.events or span.links else b"",
        )
    )


@lru_cache(KINDS_MAX)
def _shared(name: str, kind: int, attributes: tuple[tuple[str, Any], ...], error: str) -> bytes:
    found = trace_pb2.Span(
        flags=_SAMPLED | _HAS_REMOTE,
        name=name,
        kind=trace_pb2.Span.SpanKind.ValueType(kind),
        attributes=key_values(dict(attributes)),
        status=_status(error),
    )
    return bytes(found.SerializeToString())


def _own(span: Span) -> bytes:
    attributes = (attribute(9, name, value) for name, value in span.own.items())
    events = (part(11, _event(moment).SerializeToString()) for moment in span.events)
    return b"".join((*attributes, *events, *map(_link, span.links)))


def _status(error: str) -> trace_pb2.Status | None:
    if not error:
        return None
    return trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR, message=error)


def _event(moment: Moment) -> trace_pb2.Span.Event:
    return trace_pb2.Span.Event(
        time_unix_nano=moment.at * NS_PER_MS,
        name=moment.name,
        attributes=key_values(moment.attributes),
    )


def _link(link: Link) -> bytes:
    head, why = _of_link(link.what)
    return b"".join((head, link.trace_id, _SPAN_ID, link.span_id, why))


@lru_cache
def _of_link(what: str) -> tuple[bytes, bytes]:
    """What is before and after the ids of a link that is there for this."""
    found = trace_pb2.Span.Link(
        attributes=key_values({t.LINKED_AS: what}), flags=_SAMPLED | _HAS_REMOTE | _REMOTE
    )
    why = bytes(found.SerializeToString())
    whole = part(13, _TRACE_ID + bytes(16) + _SPAN_ID + bytes(8) + why)
    return whole[: whole.index(_TRACE_ID) + len(_TRACE_ID)], why
