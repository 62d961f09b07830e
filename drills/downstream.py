"""The drill's downstream system: one SQLite file that its agents share, with a log of every call.

    arrives     nothing yet        done          undone       barred
    action      apply → done       same answer   refuse       refuse
    undo        → barred           → undone      same         same

Always holds: an effect is there at most once, and not after its undoing. A payment is written down
each time that the tool makes it, since the tool does not dedupe: twice is what must not be.
"""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from headway.agents import Context

LOCK_WAIT_S = 30.0

_SCHEMA = """
create table if not exists calls (
    seq integer primary key, at real not null, pid integer not null, operation text not null,
    task text not null, step text not null, phase text not null
);
create table if not exists effects (
    operation text primary key, task text not null, step text not null, state text not null
) without rowid;
create table if not exists payments (invocation text not null, task text not null);
create table if not exists wishes (name text primary key) without rowid;
"""


@dataclass(frozen=True, slots=True)
class Called:
    """A handler began: when (Unix seconds), and in which process."""

    at: float
    pid: int
    step: str
    phase: str


class Downstream:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None, timeout=LOCK_WAIT_S)
        self._db.executescript("pragma journal_mode = wal; pragma synchronous = off;")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def called(self, ctx: Context) -> int:
        """Remember that a handler began; returns the how manieth of its operation it is."""
        operation = str(ctx.operation_id)
        self._db.execute(
            "insert into calls (at, pid, operation, task, step, phase) values (?, ?, ?, ?, ?, ?)",
            (time.time(), os.getpid(), operation, str(ctx.task), ctx.step, str(ctx.phase)),
        )
        counted = self._db.execute("select count(*) from calls where operation = ?", (operation,))
        return int(counted.fetchone()[0])

    def do(self, ctx: Context) -> bool:
        """Apply an action's effect; false if it was undone before."""
        return self._settle(str(ctx.operation_id), ctx, "done") == "done"

    def undo(self, ctx: Context) -> bool:
        """Undo an action's effect, and let it never come again; false if there was none."""
        operation = str(ctx.action_operation_id)
        self._settle(operation, ctx, "barred")
        self._db.execute(
            "update effects set state = 'undone' where operation = ? and state = 'done'",
            (operation,),
        )
        return self._settle(operation, ctx, "barred") == "undone"

    def pay(self, invocation: UUID, task: UUID) -> None:
        self._db.execute("insert into payments values (?, ?)", (str(invocation), str(task)))

    def paid(self, invocation: UUID) -> bool:
        found = self._db.execute(
            "select 1 from payments where invocation = ?", (str(invocation),)
        ).fetchone()
        return found is not None

    def payments(self, task: UUID) -> int:
        counted = self._db.execute("select count(*) from payments where task = ?", (str(task),))
        return int(counted.fetchone()[0])

    def calls(self, task: UUID) -> list[Called]:
        """Every call of a task, in order."""
        rows = self._db.execute(
            "select at, pid, step, phase from calls where task = ? order by seq", (str(task),)
        )
        return [Called(*row) for row in rows.fetchall()]

    def effects(self, task: UUID) -> dict[str, str]:
        """The state of each step that has one: done, undone or barred."""
        rows = self._db.execute("select step, state from effects where task = ?", (str(task),))
        return dict(rows.fetchall())

    def wish(self, name: str, *, granted: bool) -> None:
        """Something that handlers do while it is wished."""
        self._db.execute("delete from wishes where name = ?", (name,))
        if granted:
            self._db.execute("insert into wishes values (?)", (name,))

    def wished(self, name: str) -> bool:
        found = self._db.execute("select 1 from wishes where name = ?", (name,)).fetchone()
        return found is not None

    def _settle(self, operation: str, ctx: Context, state: str) -> str:
        """The operation's state, which is `state` if it had none."""
        self._db.execute(
            "insert or ignore into effects values (?, ?, ?, ?)",
            (operation, str(ctx.task), ctx.step, state),
        )
        row = self._db.execute("select state from effects where operation = ?", (operation,))
        return str(row.fetchone()[0])
