"""The downstream of the travel demo: bookings over HTTP, in a process of its own.

    PUT /<operation> {"kind", "trip"}    books, once: repeated, it answers as before
    DELETE /<operation>                  cancels; one that comes first bars the booking for good
    GET /                                answers, once it serves

Always holds: an operation takes effect at most once, and a barred or cancelled one never again
(409). `python -m headway.demo.languages.bookings --port PORT --data DIR` serves until SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

FILE = "bookings.sqlite3"
LOOPBACK = "127.0.0.1"
STOP_POLL_S = 0.05
PAUSE_S = 0.25  # before anything is done, and again before it is told: whoever calls may die

State = Literal["booked", "cancelled", "barred"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS bookings (
    number INTEGER PRIMARY KEY, operation TEXT UNIQUE, kind TEXT, trip TEXT, state TEXT,
    calls INTEGER NOT NULL DEFAULT 1
)"""


@dataclass(frozen=True, slots=True)
class Booking:
    """What became of one operation; `calls` tells how often it was called, undoing included."""

    number: int
    operation: str
    kind: str
    trip: str
    state: State
    calls: int


class Book:
    """The bookings in one file; for one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(_SCHEMA)

    def book(self, operation: str, kind: str, trip: str) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        found = self._called(operation)
        if found is None:
            self._insert(operation, kind, trip, "booked")
            found = self._called(operation, count=False)
        assert found is not None
        if found.state == "booked":
            return 200, {"number": found.number}
        return 409, {"state": found.state}

    def cancel(self, operation: str) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        found = self._called(operation)
        if found is None:
            self._insert(operation, "", "", "barred")
            return 200, {"cancelled": False}
        if found.state == "booked":
            self._database.execute(
                "UPDATE bookings SET state = 'cancelled' WHERE operation = ?", (operation,)
            )
        return 200, {"cancelled": found.state != "barred"}

    def close(self) -> None:
        self._database.close()

    def _called(self, operation: str, *, count: bool = True) -> Booking | None:
        if count:
            self._database.execute(
                "UPDATE bookings SET calls = calls + 1 WHERE operation = ?", (operation,)
            )
        return next(_read(self._database, "WHERE operation = ?", operation), None)

    def _insert(self, operation: str, kind: str, trip: str, state: State) -> None:
        self._database.execute(
            "INSERT INTO bookings (operation, kind, trip, state) VALUES (?, ?, ?, ?)",
            (operation, kind, trip, state),
        )


def bookings_in(path: Path) -> list[Booking]:
    """All that were made, read without asking the service."""
    with closing(sqlite3.connect(path)) as database:
        return list(_read(database, "ORDER BY number"))


def serve(port: int, path: Path) -> None:
    """Serve until SIGTERM."""
    book, turn = Book(path), threading.Lock()
    server = ThreadingHTTPServer((LOOPBACK, port), _handler(book, turn))
    server.daemon_threads = True
    stopper = threading.Thread(target=server.shutdown)  # waits for serve_forever, so not from it
    signal.signal(signal.SIGTERM, lambda *_: stopper.start())
    server.serve_forever(STOP_POLL_S)
    server.server_close()
    book.close()


def _handler(book: Book, turn: threading.Lock) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(200, {})

        def do_PUT(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(PAUSE_S)
            with turn:
                answer = book.book(self._operation, asked["kind"], asked["trip"])
            time.sleep(PAUSE_S)
            self._answer(*answer)

        def do_DELETE(self) -> None:
            time.sleep(PAUSE_S)
            with turn:
                answer = book.cancel(self._operation)
            time.sleep(PAUSE_S)
            self._answer(*answer)

        @property
        def _operation(self) -> str:
            return self.path.removeprefix("/")

        def _answer(self, status: int, answer: dict[str, Any]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """The book has it all."""

    return Handler


def _read(database: sqlite3.Connection, where: str, *values: str) -> Iterator[Booking]:
    columns = "number, operation, kind, trip, state, calls"
    for row in database.execute(f"SELECT {columns} FROM bookings {where}", values):  # noqa: S608
        yield Booking(*row)


def main() -> None:
    parser = argparse.ArgumentParser(description="The bookings behind the travel demo's agents.")
    parser.add_argument("--port", type=int, required=True, help="on 127.0.0.1")
    parser.add_argument("--data", type=Path, required=True, help=f"where {FILE} is kept")
    chosen = parser.parse_args()
    serve(chosen.port, chosen.data / FILE)


if __name__ == "__main__":
    main()
