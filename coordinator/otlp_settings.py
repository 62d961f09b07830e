"""What the standard OTEL_* variables say: whether, where to and as whom telemetry is sent. Pure.

Always holds: without an endpoint nothing is on. What cannot be understood is told and taken as its
default, for telemetry may not keep a coordinator from starting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote
from uuid import UUID

from headway.agents import telemetry as t
from headway.agents import tracing

_LOG = logging.getLogger(__name__)

SERVICE = "headway"  # service.name, unless another is given
TIMEOUT_S = 10.0
METRICS_INTERVAL_S = 60.0
SPANS_DELAY_S = 5.0
_RANDOM_BITS = 56  # of a trace id, from the right: what W3C's Trace Context Level 2 calls random

Signal = Literal["traces", "metrics", "logs"]
Sample = Callable[[UUID, str], bool]
"""Whether a task, submitted within the span of this traceparent, is traced."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one signal goes by OTLP over HTTP. `timeout_s` is in seconds; the files are paths."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = TIMEOUT_S
    gzip: bool = False
    certificate: str = ""
    client_certificate: str = ""
    client_key: str = ""


def endpoint_of(signal: Signal, environ: Mapping[str, str]) -> Endpoint | None:
    """Where a signal is sent; None if it is not."""
    if not tracing.is_wanted(signal, environ):
        return None

    def given(name: str) -> str:
        own = environ.get(f"{t.OTLP}{signal.upper()}_{name}", "")
        return (own or environ.get(t.OTLP + name, "")).strip()

    own = environ.get(f"{t.OTLP}{signal.upper()}_ENDPOINT", "").strip()
    common = environ.get(t.ENDPOINT, "").strip()
    url = own or f"{common.rstrip('/')}/v1/{signal}"
    protocol = given("PROTOCOL") or "http/protobuf"
    if protocol != "http/protobuf":
        _LOG.warning("%sPROTOCOL=%s is not spoken here; http/protobuf is", t.OTLP, protocol)
    return Endpoint(
        url,
        _pairs(given("HEADERS")),
        _number(f"{t.OTLP}TIMEOUT", given("TIMEOUT"), TIMEOUT_S * 1000) / 1000,
        given("COMPRESSION") == "gzip",
        given("CERTIFICATE"),
        given("CLIENT_CERTIFICATE"),
        given("CLIENT_KEY"),
    )


def resource_of(environ: Mapping[str, str]) -> dict[str, str]:
    """As whom telemetry is sent."""
    given = _pairs(environ.get(t.RESOURCE, ""))
    name = environ.get(t.SERVICE, "").strip() or given.get(t.SERVICE_NAME) or SERVICE
    return {**given, t.SERVICE_NAME: name}


def metrics_interval_s(environ: Mapping[str, str]) -> float:
    """Seconds between two exports of metrics."""
    given = environ.get(t.EXPORT_INTERVAL, "").strip()
    return _number(t.EXPORT_INTERVAL, given, METRICS_INTERVAL_S * 1000) / 1000


def spans_delay_s(environ: Mapping[str, str]) -> float:
    """Seconds between two exports of spans."""
    given = environ.get(t.SCHEDULE_DELAY, "").strip()
    return _number(t.SCHEDULE_DELAY, given, SPANS_DELAY_S * 1000) / 1000


def wants_payloads(environ: Mapping[str, str]) -> bool:
    """Whether arguments and results themselves may be in telemetry."""
    return environ.get(t.PAYLOADS, "").strip().lower() in ("true", "span_only", "span_and_event")


def sampler_of(environ: Mapping[str, str]) -> Sample:
    """What decides which tasks are traced: all, unless a sampler is given."""
    name = environ.get(t.SAMPLER, "").strip() or "parentbased_always_on"
    root = name.removeprefix("parentbased_")
    ratio = 1.0
    if root == "traceidratio":
        ratio = min(1.0, max(0.0, _number(t.SAMPLER_ARG, environ.get(t.SAMPLER_ARG, ""), 1.0)))
    elif root == "always_off":
        ratio = 0.0
    elif root != "always_on":
        _LOG.warning("%s=%s is not known; all tasks are traced", t.SAMPLER, name)
    by_parent = name.startswith("parentbased_")
    bound = round(ratio * (1 << _RANDOM_BITS))

    def sample(task: UUID, origin: str) -> bool:
        parent = tracing.remote(origin) if by_parent and origin else None
        if parent is not None:
            return parent.sampled
        return (task.int & ((1 << _RANDOM_BITS) - 1)) < bound

    return sample


def _pairs(text: str) -> dict[str, str]:
    """`key=value` pairs by commas, values percent-encoded."""
    found = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {key.strip(): unquote(value.strip()) for key, _, value in found}


def _number(name: str, text: str, default: float) -> float:
    if not text:
        return default
    try:
        return float(text)
    except ValueError:
        _LOG.warning("%s=%s is not a number; %g is taken", name, text, default)
        return default
