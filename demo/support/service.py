"""A service over HTTP, in a process of its own: JSON there, JSON back, one `CallBook` behind it.

The header `Idempotency-Key` carries the invocation's id, `Headway-Gate` the token that lets a
sensitive call through.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
from headway.demo.support.callbook import Answer, CallBook, Request, Service, refusal

LOOPBACK = "127.0.0.1"
STOP_POLL_S = 0.05
INVOCATION_HEADER = "Idempotency-Key"
GATE_HEADER = "Headway-Gate"


def serve(port: int, path: Path, services: dict[str, Service]) -> None:
    """Serve `services`, each at the path that is its name, until SIGTERM."""
    book, turn = CallBook(path, services), threading.Lock()

    def take(request: Request) -> Answer:
        with turn:
            return book.take(request)

    server = ThreadingHTTPServer((LOOPBACK, port), _handler(take))
    server.daemon_threads = True
    stopper = threading.Thread(target=server.shutdown)  # waits for serve_forever, so not from it
    signal.signal(signal.SIGTERM, lambda *_: stopper.start())
    server.serve_forever(STOP_POLL_S)
    server.server_close()
    book.close()


def _handler(take: Callable[[Request], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answer = self._answer()
            body = orjson.dumps(answer.body)
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _answer(self) -> Answer:
            try:
                body = orjson.loads(self.rfile.read(int(self.headers.get("Content-Length", ""))))
                if not isinstance(body, dict):
                    return refusal(400, "the body is not a JSON object")
            except ValueError:
                return refusal(400, "the body is not JSON of a stated length")
            invocation = self.headers.get(INVOCATION_HEADER, "")
            gate = self.headers.get(GATE_HEADER, "")
            return take(Request(self.path.removeprefix("/"), body, invocation, gate))

        def log_message(self, format: str, *args: Any) -> None:
            """The call book has it all."""

    return Handler
