"""A service's memory: every call that it got, what it answered, and what took effect, in SQLite.

Each call is one transaction. A call that has an effect, or is paid for, names its invocation; the
same invocation again gets the same answer, and nothing happens twice. The same name for another
request is refused, as payment providers do.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

Outcome = Literal[
    "read",  # nothing took effect
    "applied",  # it took effect now, or was billed
    "repeated",  # the answer is the one given before
    "refused",
]

_SCHEMA = """
create table if not exists calls (
    seq integer primary key, at_ms integer not null, service text not null,
    invocation text not null, outcome text not null, tokens integer not null
);
create table if not exists answers (
    service text not null, invocation text not null, request text not null,
    answer text not null, primary key (service, invocation)
) without rowid;
create table if not exists effects (
    seq integer primary key, service text not null, invocation text not null,
    subject text not null, detail text not null
);
"""


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `invocation` is what its caller names it by, `gate` its leave to make it."""

    service: str
    body: dict[str, Any]
    invocation: str = ""
    gate: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the caller gets. `effect` says what it was done to, and what; `tokens` are billed."""

    body: dict[str, Any]
    status: int = 200
    effect: tuple[str, str] | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """How one kind of call is answered; with `once`, each invocation only once."""

    answer: Callable[[Request], Answer]
    once: bool = field(default=False, kw_only=True)


class CallBook:
    """The only writer of the file at `path`; for one thread at a time."""

    def __init__(self, path: Path, services: dict[str, Service]) -> None:
        self._services = services
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.executescript("pragma journal_mode = wal; pragma synchronous = normal;")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def take(self, request: Request) -> Answer:
        """Answer a call, and write down that it came."""
        with self._db:
            self._db.execute("begin immediate")
            outcome, answer = self._treat(request)
            self._db.execute(
                "insert into calls (at_ms, service, invocation, outcome, tokens)"
                " values (?, ?, ?, ?, ?)",
                (
                    time.time_ns() // 1_000_000,
                    request.service,
                    request.invocation,
                    outcome,
                    answer.tokens if outcome == "applied" else 0,
                ),
            )
        return answer

    def _treat(self, request: Request) -> tuple[Outcome, Answer]:
        service = self._services.get(request.service)
        if service is None:
            return "refused", refusal(404, f"there is no service {request.service!r}")
        if not service.once:
            answer = service.answer(request)
            return ("read" if answer.status < 400 else "refused"), answer
        if not request.invocation:
            return "refused", refusal(400, "the call has no Idempotency-Key")
        return self._once(service, request)

    def _once(self, service: Service, request: Request) -> tuple[Outcome, Answer]:
        digest = hashlib.sha256(orjson.dumps(request.body, option=orjson.OPT_SORT_KEYS)).hexdigest()
        row = self._db.execute(
            "select request, answer from answers where service = ? and invocation = ?",
            (request.service, request.invocation),
        ).fetchone()
        if row is not None and row[0] != digest:
            return "refused", refusal(422, "this Idempotency-Key was used for another request")
        if row is not None:
            return "repeated", Answer(orjson.loads(row[1]))
        answer = service.answer(request)
        if answer.status >= 400:
            return "refused", answer
        self._db.execute(
            "insert into answers values (?, ?, ?, ?)",
            (request.service, request.invocation, digest, orjson.dumps(answer.body).decode()),
        )
        if answer.effect is not None:
            self._db.execute(
                "insert into effects (service, invocation, subject, detail) values (?, ?, ?, ?)",
                (request.service, request.invocation, *answer.effect),
            )
        return "applied", answer


def refusal(status: int, reason: str) -> Answer:
    """An answer that says why not."""
    return Answer({"error": {"message": reason}}, status)
