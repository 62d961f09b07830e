"""The downstream service's memory: books, a fence, and a log of every call, in one SQLite file.

Each call is one transaction, so that an effect, its fence row and its line in the log stand or
fall together. The fence is what makes at-least-once delivery harmless:

    arrives     no row           done            failed                  undone    barred
    action      apply → done     same answer     new attempt: try anew   refuse    refuse
                or → failed      (duplicate)     same: same refusal      (fenced)  (fenced)
    undo        → barred,        reverse         → barred,               same      same
                `empty`          → undone        `empty`                 answer    answer

The file survives the death of any process (WAL, synchronous NORMAL); power loss is not its topic.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from headway.demo.books import ACTIONS, Entry, Refusal, opening
from headway.demo.calls import Answer, Call
from headway.demo.orders import Order

_SCHEMA = """
create table accounts (
    account text primary key, book text not null, opening integer not null, balance integer not null
) without rowid;
create table fence (
    operation text primary key, number integer not null unique, action text not null,
    order_id text not null, attempt integer not null, kind text not null, reason text not null,
    state text not null check (state in ('done', 'failed', 'undone', 'barred'))
) without rowid;
create table entries (
    seq integer primary key, operation text not null, book text not null, account text not null,
    amount integer not null
);
create table calls (
    seq integer primary key, at_ms integer not null, operation text not null,
    action text not null, order_id text not null, attempt integer not null, undo integer not null,
    outcome text not null
);
"""


class Ledger:
    """The only writer of the file at `path`, which it creates for `orders` if it is not there."""

    def __init__(self, path: Path, orders: Iterable[Order]) -> None:
        is_new = not path.exists()
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript("pragma journal_mode = wal; pragma synchronous = normal;")
        if is_new:
            self._create(opening(orders))

    def close(self) -> None:
        self._db.close()

    def perform(self, call: Call) -> Answer:
        """Carry out `call` at most once, whatever came before, and log it."""
        with self._db:
            self._db.execute("begin immediate")
            answer = self._undo(call) if call.undo else self._act(call)
            self._log(call, answer)
        return answer

    def fail(self, call: Call) -> Answer:
        """Log a call that fails before it is looked at."""
        answer = Answer("failed", kind="ServiceFault", reason="a fault before anything was done")
        self._log(call, answer)
        return answer

    def _create(self, entries: Iterable[Entry]) -> None:
        self._db.executescript(_SCHEMA)
        with self._db:
            self._db.execute("begin")
            self._db.executemany(
                "insert into accounts values (?, ?, ?, ?)",
                [(entry.account, entry.book, entry.amount, entry.amount) for entry in entries],
            )

    def _act(self, call: Call) -> Answer:
        action = ACTIONS[call.action]
        if action.read_only:
            refusal = action.refusal(call.order, self._balance_of)
            return _refused(refusal) if refusal else Answer("read")
        match self._fence_row(call):
            case ("done", number, _, _, _):
                return Answer("duplicate", number)
            case ("failed", _, attempt, kind, reason) if call.attempt <= attempt:
                return Answer("refused", kind=kind, reason=reason)
            case ("undone" | "barred", _, _, _, _):
                return Answer("fenced", kind="Fenced", reason="it was compensated before")
        return self._apply(call)

    def _apply(self, call: Call) -> Answer:
        action = ACTIONS[call.action]
        refusal = action.refusal(call.order, self._balance_of)
        if refusal:
            self._mark(call, "failed", refusal)
            return _refused(refusal)
        self._post(call, action.entries(call.order))
        return Answer("applied", self._mark(call, "done"))

    def _undo(self, call: Call) -> Answer:
        match self._fence_row(call):
            case ("done", number, _, _, _):
                entries = ACTIONS[call.action].entries(call.order)
                self._post(call, [entry.reversed() for entry in entries])
                self._mark(call, "undone")
                return Answer("undone", number)
            case ("undone", number, _, _, _):
                return Answer("duplicate", number)
        self._mark(call, "barred")
        return Answer("empty")

    def _fence_row(self, call: Call) -> tuple[str, int, int, str, str] | None:
        row: tuple[str, int, int, str, str] | None = self._db.execute(
            "select state, number, attempt, kind, reason from fence where operation = ?",
            (str(call.operation),),
        ).fetchone()
        return row

    def _mark(self, call: Call, state: str, refusal: Refusal | None = None) -> int:
        """Write the operation's fence row; its receipt number stays the one it got first."""
        why = refusal or Refusal("", "")
        (number,) = self._db.execute(
            """
            insert into fence
            select ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ? from fence where true
            on conflict (operation) do update
            set state = excluded.state, attempt = excluded.attempt,
                kind = excluded.kind, reason = excluded.reason
            returning number
            """,
            (
                str(call.operation),
                call.action,
                call.order.order,
                call.attempt,
                why.kind,
                why.reason,
                state,
            ),
        ).fetchone()
        return int(number)

    def _post(self, call: Call, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._db.execute(
                "insert into entries (operation, book, account, amount) values (?, ?, ?, ?)",
                (str(call.operation), entry.book, entry.account, entry.amount),
            )
            self._db.execute(
                """
                insert into accounts values (?, ?, 0, ?)
                on conflict (account) do update set balance = balance + excluded.balance
                """,
                (entry.account, entry.book, entry.amount),
            )

    def _balance_of(self, account: str) -> int:
        row = self._db.execute(
            "select balance from accounts where account = ?", (account,)
        ).fetchone()
        return int(row[0]) if row else 0

    def _log(self, call: Call, answer: Answer) -> None:
        self._db.execute(
            """
            insert into calls (at_ms, operation, action, order_id, attempt, undo, outcome)
            values (?, ?, ?, ?, ?, ?, ?)
            """,
            (
                time.time_ns() // 1_000_000,
                str(call.operation),
                call.action,
                call.order.order,
                call.attempt,
                call.undo,
                answer.outcome,
            ),
        )


def _refused(refusal: Refusal) -> Answer:
    return Answer("refused", kind=refusal.kind, reason=refusal.reason)
