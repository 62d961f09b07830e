"""Which trace and which span something belongs to; whoever knows the task can tell.

A task is a trace: the trace's id is the task's. Span ids are derived from what the span is of, so
that every process, and every one that takes over from another, derives the same. What crosses a
process boundary is W3C's `traceparent`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from headway.agents import telemetry as t
from opentelemetry import context, trace

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


class Remote(NamedTuple):
    """A span of somebody else, as its traceparent names it."""

    trace_id: bytes
    span_id: bytes
    sampled: bool


def root_span(task: UUID) -> bytes:
    """The span of a task: the random half of its id."""
    return task.bytes[8:]


def attempt_span(task: UUID, step: str, phase: str, attempt: int) -> bytes:
    """The span of an attempt, whoever carries it out and however often it is taken over."""
    return _digest(task, f"{phase}/{attempt}/{step}")


def invocation_span(invocation: UUID) -> bytes:
    """The span of one call of a tool, however often it is run."""
    return _digest(invocation, "invocation")


def other_span(task: UUID, what: str) -> bytes:
    """The span of something else that happened to a task once."""
    return _digest(task, f"other/{what}")


def traceparent(trace_id: UUID, span_id: bytes, *, sampled: bool = True) -> str:
    """As it is put into messages."""
    return f"00-{trace_id.hex}-{span_id.hex()}-{'01' if sampled else '00'}"


def remote(text: str) -> Remote | None:
    """What a traceparent names; None if it is none, or names nothing."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None:
        return None
    trace_id, span_id = bytes.fromhex(found[1]), bytes.fromhex(found[2])
    if not any(trace_id) or not any(span_id):
        return None
    return Remote(trace_id, span_id, bool(int(found[3], 16) & 1))


def current() -> str:
    """The traceparent of the span in which our caller is; "" if there is none."""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags) & 1:02x}"


@contextmanager
def within(parent: str) -> Iterator[None]:
    """What our caller begins is part of the span that the traceparent names. Costs next to nothing
    unless this process has an OpenTelemetry SDK."""
    found = remote(parent) if is_configured() else None
    if found is None:
        yield
        return
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if found.sampled else 0)
    span = trace.SpanContext(
        int.from_bytes(found.trace_id), int.from_bytes(found.span_id), True, flags
    )
    around = trace.set_span_in_context(trace.NonRecordingSpan(span))
    token = context.attach(around)
    try:
        yield
    finally:
        context.detach(token)


@contextmanager
def nested(task: UUID, span_id: bytes) -> Iterator[None]:
    """As `within`, for another span of the trace that our caller is in."""
    sampled = bool(trace.get_current_span().get_span_context().trace_flags & 1)
    with within(traceparent(task, span_id, sampled=sampled)):
        yield


def is_wanted(signal: str, environ: Mapping[str, str]) -> bool:
    """Whether the standard variables turn on a signal: traces, metrics or logs."""
    if environ.get(t.DISABLED, "").strip().lower() == "true":
        return False
    if environ.get(t.EXPORTER.format(signal.upper()), "otlp").strip().lower() != "otlp":
        return False
    own = environ.get(f"{t.OTLP}{signal.upper()}_ENDPOINT", "")
    return bool((own or environ.get(t.ENDPOINT, "")).strip())


def is_configured() -> bool:
    """Whether somebody set up tracing in this process."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _digest(of: UUID, what: str) -> bytes:
    found = hashlib.sha256(of.bytes + what.encode()).digest()[:8]
    return found if any(found) else b"\1" * 8
