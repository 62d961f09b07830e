"""OpenTelemetry's SDK for what handlers trace themselves. Loaded only where it is wanted.

What a process had not sent when it was killed is lost; the spans of attempts and calls are not its
own, and are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from headway.agents import telemetry as t
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SERVICE = "headway-agents"  # service.name, unless another is given
END_S = 2.0  # for what is left to be sent


def install(environ: Mapping[str, str]) -> Callable[[], None]:
    """Make it the process's own, as the standard variables say; returns what ends it, which takes
    at most END_S."""
    named = environ.get(t.SERVICE) or t.SERVICE_NAME in environ.get(t.RESOURCE, "")
    resource = Resource.create({} if named else {t.SERVICE_NAME: SERVICE})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)

    def end() -> None:
        ending = threading.Thread(target=provider.shutdown, daemon=True)
        ending.start()
        ending.join(END_S)

    return end
