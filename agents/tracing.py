"""Which trace and which span something belongs to; whoever knows the task can tell.

A task is a trace: the trace's id is the task's. Span ids are derived from what the span is of, so
that every process, and every one that takes over from another, derives the same. What crosses a
process boundary is W3C's `traceparent`.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple
from uuid import UUID

from headway.agents import telemetry as t
from opentelemetry import context, trace

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")

LOOK_EVERY_S = 1.0  # for whether this process traces, while it does not

_INVALID = bytes(8)  # no span may have this id


class Remote(NamedTuple):
    """A span of somebody else, as its traceparent names it."""

    trace_id: bytes
    span_id: bytes
    sampled: bool


def root_span(task: UUID) -> bytes:
    """The span of a task: the random half of its id."""
    return root_of(task.bytes)


def root_of(trace_id: bytes) -> bytes:
    """The span that a trace of ours begins with."""
    return trace_id[8:]


def attempt_span(task: UUID, step: str, phase: str, attempt: int) -> bytes:
    """The span of an attempt, whoever carries it out and however often it is taken over."""
    return derived(task.bytes, attempt_name(step, phase, attempt))


def attempt_name(step: str, phase: str, attempt: int) -> bytes:
    """What tells an attempt's span from others of its task."""
    return f"{phase}/{attempt}/{step}".encode()


def invocation_span(invocation: UUID) -> bytes:
    """The span of one call of a tool, however often it is run."""
    return derived(invocation.bytes, b"invocation")


def other_span(task: UUID, what: str) -> bytes:
    """The span of something else that happened to a task once."""
    return derived(task.bytes, f"other/{what}".encode())


def derived(of: bytes, what: bytes) -> bytes:
    """A span's id from what it is of."""
    found = hashlib.sha256(of + what).digest()[:8]
    return found if found != _INVALID else b"\1" * 8


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


def within(parent: str) -> AbstractContextManager[None]:
    """What our caller begins is part of the span that the traceparent names. Costs next to nothing
    unless this process has an OpenTelemetry SDK."""
    return _Within(parent) if parent and _sdk.is_there() else _NOWHERE


_NOWHERE: AbstractContextManager[None] = nullcontext()


class _Within:
    __slots__ = ("_parent", "_token")

    def __init__(self, parent: str) -> None:
        self._parent = parent

    def __enter__(self) -> None:
        self._token = context.attach(trace.set_span_in_context(_Named(self._parent)))

    def __exit__(self, *_: object) -> None:
        context.detach(self._token)


class _Named(trace.NonRecordingSpan):
    """The span that a traceparent names, which is read once somebody asks: most handlers trace
    nothing."""

    def __init__(self, parent: str) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self._unread = parent

    def get_span_context(self) -> trace.SpanContext:
        found = remote(self._unread) if self._unread else None
        self._unread = ""
        if found is not None:
            self._context = trace.SpanContext(
                int.from_bytes(found.trace_id),
                int.from_bytes(found.span_id),
                is_remote=True,
                trace_flags=trace.TraceFlags(int(found.sampled)),
            )
        return self._context


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


class _Sdk:
    """Whether tracing is set up, for who asks all the time: found out once a second until it is."""

    def __init__(self) -> None:
        self._is_there = False
        self._look_at = 0.0

    def is_there(self) -> bool:
        if not self._is_there and (now := time.monotonic()) >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            self._is_there = is_configured()
        return self._is_there


_sdk = _Sdk()
