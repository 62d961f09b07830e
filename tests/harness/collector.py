"""A collector of OTLP over HTTP in this process: keeps what it takes, or refuses as it is told."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_REQUESTS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Taken(NamedTuple):
    """A span as it came, with who sent it."""

    span: Any
    resource: dict[str, Any]
    scope: str

    @property
    def attributes(self) -> dict[str, Any]:
        return plain(self.span.attributes)


@dataclass
class Collector:
    """`status` is what it answers; anything but 200 takes nothing."""

    url: str = ""
    status: int = 200
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[Taken] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)
    records: list[Any] = field(default_factory=list)
    asked: int = 0

    def of_trace(self, trace_id: bytes) -> list[Taken]:
        return [each for each in self.spans if each.span.trace_id == trace_id]

    def variables(self, **more: str) -> dict[str, str]:
        """What turns telemetry on."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, **more}

    def take(self, path: str, body: bytes) -> None:
        request = _REQUESTS[path].FromString(body)
        for sent in getattr(request, "resource_spans", ()):
            for scoped in sent.scope_spans:
                who, scope = plain(sent.resource.attributes), scoped.scope.name
                self.spans += [Taken(span, who, scope) for span in scoped.spans]
        for sent in getattr(request, "resource_metrics", ()):
            self.metrics += [each for scoped in sent.scope_metrics for each in scoped.metrics]
        for sent in getattr(request, "resource_logs", ()):
            self.records += [each for scoped in sent.scope_logs for each in scoped.log_records]


def plain(attributes: Any) -> dict[str, Any]:
    """Attributes as a mapping."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a port of its own."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.asked += 1
            if collector.status == 200:
                collector.headers.append(dict(self.headers.items()))
                zipped = self.headers.get("Content-Encoding") == "gzip"
                collector.take(self.path, gzip.decompress(body) if zipped else body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Nothing is told of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
