"""A downstream system that many processes share, in one SQLite file: it applies each operation
once, whatever is asked of it how often, and remembers every call.

    arrives     nothing yet        done          undone       barred
    action      apply → done       same answer   refuse       refuse
    undo        → barred, empty    → undone      same         same, empty
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from headway.agents import Context

_SCHEMA = """
create table if not exists effects (
    operation text primary key, task text not null, step text not null, state text not null
) without rowid;
create table if not exists calls (
    seq integer primary key, at real not null, pid integer not null, operation text not null,
    task text not null, step text not null, phase text not null, attempt integer not null,
    epoch integer not null
);
"""


class Fenced(Exception):
    """An action that came after its own undoing."""


class Downstream:
    """Always holds: an operation's effect is there at most once, and not after its undoing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._db.executescript("pragma journal_mode = wal; pragma synchronous = off;")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def called(self, ctx: Context) -> None:
        """Remember that a handler began."""
        self._db.execute(
            "insert into calls (at, pid, operation, task, step, phase, attempt, epoch)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                time.time(),
                os.getpid(),
                str(ctx.operation_id),
                str(ctx.task),
                ctx.step,
                str(ctx.phase),
                ctx.attempt,
                ctx.epoch,
            ),
        )

    def do(self, ctx: Context) -> None:
        operation = str(ctx.operation_id)
        self._db.execute(
            "insert or ignore into effects values (?, ?, ?, 'done')",
            (operation, str(ctx.task), ctx.step),
        )
        if self._state(operation) != "done":
            raise Fenced

    def undo(self, ctx: Context) -> bool:
        """Undo the action's effect; false if there was none."""
        operation = str(ctx.action_operation_id)
        self._db.execute(
            "insert or ignore into effects values (?, ?, ?, 'barred')",
            (operation, str(ctx.task), ctx.step),
        )
        self._db.execute(
            "update effects set state = 'undone' where operation = ? and state = 'done'",
            (operation,),
        )
        return self._state(operation) == "undone"

    def effects(self, task: UUID | None = None) -> dict[str, int]:
        """How many effects there are, by their state."""
        rows = self._db.execute(
            "select state, count(*) from effects where ?1 is null or task = ?1 group by state",
            (None if task is None else str(task),),
        )
        return dict(rows.fetchall())

    def states(self) -> list[tuple[str, str, str]]:
        """Task, step and state of every effect."""
        return self._db.execute("select task, step, state from effects").fetchall()

    def calls(self, task: UUID | None = None) -> list[dict[str, Any]]:
        """Every call, in order."""
        rows = self._db.execute(
            "select at, pid, operation, step, phase, attempt, epoch from calls"
            " where ?1 is null or task = ?1 order by seq",
            (None if task is None else str(task),),
        )
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]

    def _state(self, operation: str) -> str:
        row = self._db.execute("select state from effects where operation = ?", (operation,))
        return str(row.fetchone()[0])
