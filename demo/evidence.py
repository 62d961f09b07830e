"""What the downstream service's file holds, read for the audit without asking the service."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from headway.demo.books import Entry


@dataclass(frozen=True, slots=True)
class FenceRow:
    """Where one operation stands: `done`, `failed`, `undone` or `barred`."""

    operation: str
    number: int
    action: str
    order: str
    state: str


@dataclass(frozen=True, slots=True)
class PostedEntry:
    operation: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class LoggedCall:
    operation: str
    action: str
    order: str
    attempt: int
    undo: bool
    outcome: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The file's content. Balances are by account; the fence is by operation."""

    opening: dict[str, int]
    balances: dict[str, int]
    fence: dict[str, FenceRow]
    entries: tuple[PostedEntry, ...]
    calls: tuple[LoggedCall, ...]


def read_evidence(path: Path) -> Evidence:
    """Read the service's file; sqlite3.Error when it is not one."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        accounts = list(db.execute("select account, opening, balance from accounts"))
        return Evidence(
            opening={account: cents for account, cents, _ in accounts if cents},
            balances={account: balance for account, _, balance in accounts},
            fence={row.operation: row for row in _fence(db)},
            entries=tuple(
                PostedEntry(operation, Entry(book, account, amount))
                for operation, book, account, amount in db.execute(
                    "select operation, book, account, amount from entries order by seq"
                )
            ),
            calls=tuple(_calls(db)),
        )


def _fence(db: sqlite3.Connection) -> Iterator[FenceRow]:
    for row in db.execute("select operation, number, action, order_id, state from fence"):
        yield FenceRow(*row)


def _calls(db: sqlite3.Connection) -> Iterator[LoggedCall]:
    for operation, action, order, attempt, undo, outcome in db.execute(
        "select operation, action, order_id, attempt, undo, outcome from calls order by seq"
    ):
        yield LoggedCall(operation, action, order, attempt, bool(undo), outcome)
