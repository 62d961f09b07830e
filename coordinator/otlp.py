"""OTLP over HTTP: our spans as the messages of OpenTelemetry's protocol, and their sending.

Sending blocks in a thread of its own, so that nothing else waits for a collector, nor does the end
of the process. It never raises
anything but what says how it went: NotTaken, to be tried again, or a log line.
"""

from __future__ import annotations

import gzip
import logging
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from http.client import HTTPException
from typing import Any

from headway.agents import telemetry as t
from headway.agents.threads import in_thread
from headway.coordinator.otlp_settings import Endpoint
from headway.coordinator.spans import Link, Moment, Span
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

_LOG = logging.getLogger(__name__)

NS_PER_MS = 1_000_000
ANSWER_MAX_BYTES = 65_536
_SAMPLED = 0x01
_HAS_REMOTE, _REMOTE = 0x100, 0x200  # of a link's flags
_LATER = (429, 502, 503, 504)  # statuses after which the protocol asks to try again
KINDS_MAX = 4_096  # of spans, by what they have in common


class NotTaken(Exception):
    """A collector is away, or asked to come again later."""


def resource(attributes: Mapping[str, Any]) -> Resource:
    """Who sends."""
    return Resource(attributes=key_values(attributes))


def scope() -> InstrumentationScope:
    return InstrumentationScope(name=t.SCOPE)


def key_values(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes as the protocol has them."""
    return [_key_value(name, value) for name, value in attributes.items()]


def _key_value(name: str, value: Any) -> KeyValue:
    match value:
        case bool():
            return KeyValue(key=name, value=AnyValue(bool_value=value))
        case int():
            return KeyValue(key=name, value=AnyValue(int_value=value))
        case float():
            return KeyValue(key=name, value=AnyValue(double_value=value))
        case _:
            return KeyValue(key=name, value=AnyValue(string_value=str(value)))


def trace_request(who: Resource, spans: Iterable[Span]) -> bytes:
    """These spans as one request."""
    parts = [part(2, _encoded(span)) for span in spans]
    scoped = part(1, scope().SerializeToString()) + b"".join(parts)
    return part(1, part(1, who.SerializeToString()) + part(2, scoped))


def _encoded(span: Span) -> bytes:
    """A span's message, put together from what many have in common and what is its own: making all
    of it anew costs four times as much."""
    return b"".join(
        (
            b"\x0a\x10",
            span.trace_id,
            b"\x12\x08",
            span.span_id,
            b"\x22\x08" + span.parent if span.parent else b"",
            b"\x39",
            (span.began * NS_PER_MS).to_bytes(8, "little"),
            b"\x41",
            (span.ended * NS_PER_MS).to_bytes(8, "little"),
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
    found = trace_pb2.Span(
        attributes=key_values(span.own), events=[_event(moment) for moment in span.events]
    )
    links = (part(13, _link(link)) for link in span.links)
    return b"".join((found.SerializeToString(), *links))


def part(number: int, body: bytes) -> bytes:
    """A field of a message that is one itself."""
    size, head = len(body), bytearray((number << 3 | 2,))
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + body


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
    return b"".join((b"\x0a\x10", link.trace_id, b"\x12\x08", link.span_id, _why(link.what)))


@lru_cache
def _why(what: str) -> bytes:
    found = trace_pb2.Span.Link(
        attributes=key_values({t.LINKED_AS: what}), flags=_SAMPLED | _HAS_REMOTE | _REMOTE
    )
    return bytes(found.SerializeToString())


class Sender:
    """Sends one signal. What a collector refuses for good is told in the log and counts as taken:
    it would be refused for ever."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._tls = _tls(endpoint) if endpoint.url.startswith("https:") else None

    async def send(self, body: bytes, count: int) -> None:
        """Have a request of `count` things taken. NotTaken says why it was not, for now."""
        await in_thread(partial(self._post, body, count), "telemetry", _nobody_waits)

    def _post(self, body: bytes, count: int) -> None:
        headers = {**self._endpoint.headers, "Content-Type": "application/x-protobuf"}
        if self._endpoint.gzip:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        request = urllib.request.Request(self._endpoint.url, body, headers, method="POST")  # noqa: S310 - the operator's
        try:
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=self._endpoint.timeout_s, context=self._tls
            ) as answer:
                _look(answer.read(ANSWER_MAX_BYTES), count)
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _LATER:
                    raise NotTaken(f"it answered {error.code}") from error
                _LOG.error("the collector refused %d things for good: %d", count, error.code)
        except (OSError, HTTPException) as error:
            raise NotTaken(f"{type(error).__name__}: {error}") from error


def _look(answer: bytes, count: int) -> None:
    """Tell what a collector took only in part; the answers of all signals are alike in this."""
    told = ExportTraceServiceResponse.FromString(answer).partial_success
    if told.rejected_spans:
        _LOG.error(
            "the collector refused %d of %d: %s", told.rejected_spans, count, told.error_message
        )


def _nobody_waits() -> None:
    """For the end of a thread."""


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=endpoint.certificate or None)
    if endpoint.client_certificate:
        context.load_cert_chain(endpoint.client_certificate, endpoint.client_key or None)
    return context
