"""OTLP over HTTP: what the messages of OpenTelemetry's protocol have in common, and their sending.

Sending blocks in a thread of its own, so that nothing else waits for a collector, nor does the end
of the process. It never raises anything but what says how it
went: NotTaken, to be tried again, or a log line.
"""

from __future__ import annotations

import gzip
import logging
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import lru_cache, partial
from http.client import HTTPException
from typing import Any

from headway.agents import telemetry as t
from headway.agents.threads import in_thread
from headway.coordinator.otlp_settings import Endpoint
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

_LOG = logging.getLogger(__name__)

NS_PER_MS = 1_000_000
ANSWER_MAX_BYTES = 65_536
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


def attribute(number: int, name: str, value: Any) -> bytes:
    """An attribute as a field of what it is of; of texts all but the text is made once."""
    if type(value) is not str or not value:
        return part(number, _key_value(name, value).SerializeToString())
    text = value.encode()
    return _before(number, name, len(text)) + text


@lru_cache(KINDS_MAX)
def _before(number: int, name: str, size: int) -> bytes:
    """What is before a text of so many bytes, which comes last."""
    return part(number, _key_value(name, "x" * size).SerializeToString())[:-size]


def part(number: int, body: bytes) -> bytes:
    """A field of a message that is one itself."""
    size, head = len(body), bytearray((number << 3 | 2,))
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + body


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
