"""The fence: a table in the agent's own database, so that each effect happens exactly once there.

The fence's row is written in the transaction of the effect; both stand or fall together:

    async with pool.acquire() as connection, connection.transaction():
        fence = await Fence.postgres(connection).enter(ctx, Receipt)
        if fence.result_known:
            return fence.result                      # done before: the same answer again
        number = await connection.fetchval("INSERT INTO charges …")
        return await fence.done(Receipt(number=number))

    with closing(sqlite3.connect("shop.db")) as db, db:
        fence = Fence.sqlite(db).enter(ctx, Receipt)  # in SQLite the same words, without await
        …

One row stands for a step's action and its compensation, whatever the attempt. What arrives, and
what the row says by then:

                    no row          done                  compensated    suspended
    action          go on           the same result       Suspended      Suspended
                    → done
    compensation    EMPTY           go on → compensated   None           EMPTY
                    → suspended

So an effect is not applied twice; a compensation of what never happened succeeds and does nothing
(empty rollback); an action that comes after its compensation is refused (suspension). The three
are known from the fence of Seata's TCC mode, whose rows keep the phase only; this one keeps the
result too, because an answer can be lost as easily as a command. Of two at once, such as an attempt
and the one that took over from it, the second waits in `enter` until the first has committed or
rolled back, and then sees what the first left.

An action that fails lets its error leave the transaction: no row remains, and another attempt
starts anew. What happens outside of the database (a payment, a mail) no fence can hold; give the
service that does it `ctx.operation_id` to dedupe on.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, overload

from headway.agents.binding import EMPTY
from headway.agents.context import Context
from headway.agents.errors import HeadwayError, InvalidInput, Reject
from headway.agents.messages import Phase, describe
from pydantic import TypeAdapter, ValidationError

POSTGRES_DDL = """
SELECT pg_advisory_xact_lock(hashtext('headway_fence'));  -- two that install at once would collide
CREATE TABLE IF NOT EXISTS headway_fence (
    task uuid NOT NULL,
    step text NOT NULL,
    state text NOT NULL CHECK (state IN ('done', 'compensated', 'suspended')),
    result text NOT NULL DEFAULT 'null',  -- JSON; as text, whatever codecs a connection has for it
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (task, step)
);
CREATE INDEX IF NOT EXISTS headway_fence_at ON headway_fence (at);
"""

SQLITE_DDL = """
CREATE TABLE IF NOT EXISTS headway_fence (
    task text NOT NULL,
    step text NOT NULL,
    state text NOT NULL CHECK (state IN ('done', 'compensated', 'suspended')),
    result text NOT NULL DEFAULT 'null',  -- JSON
    at integer NOT NULL DEFAULT (strftime('%s')),  -- seconds since 1970, UTC
    PRIMARY KEY (task, step)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS headway_fence_at ON headway_fence (at);
"""

State = Literal["done", "compensated", "suspended"]
T = TypeVar("T")
C = TypeVar("C")

_FIRST_STATE: dict[Phase, State] = {"action": "done", "compensation": "suspended"}
"""A row's first state, from `enter` on: it is true even if `done` is never called."""

_PG_INSERT = """
INSERT INTO headway_fence (task, step, state) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING RETURNING state, result
"""
_PG_LOCK = "SELECT state, result FROM headway_fence WHERE task = $1 AND step = $2 FOR UPDATE"
_PG_COMPENSATED = """
UPDATE headway_fence SET state = 'compensated', at = now() WHERE task = $1 AND step = $2
"""
_PG_DONE = "UPDATE headway_fence SET result = $3 WHERE task = $1 AND step = $2 AND state = 'done'"
_PG_FORGET = "DELETE FROM headway_fence WHERE at < $1"

_LITE_INSERT = """
INSERT INTO headway_fence (task, step, state) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
"""
_LITE_READ = "SELECT state, result FROM headway_fence WHERE task = ? AND step = ?"
_LITE_COMPENSATED = """
UPDATE headway_fence SET state = 'compensated', at = strftime('%s') WHERE task = ? AND step = ?
"""
_LITE_DONE = "UPDATE headway_fence SET result = ? WHERE task = ? AND step = ? AND state = 'done'"
_LITE_FORGET = "DELETE FROM headway_fence WHERE at < ?"

_NO_TRANSACTION = (
    "the fence is entered outside of a transaction; begin the one that the effect is written in"
)


class Suspended(Reject):
    """The action came after its compensation, and must not take effect any more.

    A worker reports it as failed without an effect.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason, kind="Suspended")


class PostgresConnection(Protocol):
    """What the fence needs of a connection; asyncpg's have it, pooled ones too."""

    async def fetchrow(self, query: str, *args: Any) -> Any: ...

    async def execute(self, query: str, *args: Any) -> str: ...

    def is_in_transaction(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Row:
    """What an earlier operation of the same step left."""

    state: State
    result: str


class _Entered(Generic[C, T]):
    """An operation that has entered. Its row is locked until the transaction ends.

    Attributes:
        result_known: nothing is to be done: return `result`.
        result: of an action what `done` was given; of a compensation EMPTY if there was nothing to
            undo, None if it was undone before (whatever the type checker thinks).
        action_result: for a compensation that has something to undo, what the action's `done` was
            given, even if no coordinator ever heard of it.
    """

    def __init__(
        self, connection: C, ctx: Context, adapter: TypeAdapter[T], row: _Row | None
    ) -> None:
        self._connection = connection
        self._ctx = ctx
        self._adapter = adapter
        self.result_known = row is not None
        self.result = cast("T", None)
        self.action_result: T | None = None
        if ctx.phase == "compensation":
            self._undo(row)
        elif row is not None:
            self.result = self._repeat(row)

    def _undo(self, row: _Row | None) -> None:
        if row is None or row.state == "suspended":
            self.result_known, self.result = True, cast("T", EMPTY)
        elif row.state == "done":
            self.result_known, self.action_result = False, self._read(row)

    def _repeat(self, row: _Row) -> T:
        if row.state != "done":
            raise Suspended(f"{self._name} comes after its compensation and must not happen now")
        return self._read(row)

    def _read(self, row: _Row) -> T:
        try:
            return self._adapter.validate_json(row.result)
        except ValidationError as error:
            raise InvalidInput(
                f"headway_fence: result of {self._name}: {describe(error)}"
            ) from error

    def _written(self, result: T) -> str:
        if self.result_known:
            raise HeadwayError(
                f"{self._name} was done before; return the result known to the fence"
            )
        return self._adapter.dump_json(result).decode()

    @property
    def _name(self) -> str:
        return f"step {self._ctx.step!r} of task {self._ctx.task}"


class EnteredPostgres(_Entered[PostgresConnection, T]):
    """An operation that has entered, in PostgreSQL."""

    async def done(self, result: T) -> T:
        """Keep an action's `result`, to be given again, and return it."""
        written = self._written(result)
        await self._connection.execute(_PG_DONE, self._ctx.task, self._ctx.step, written)
        return result


class EnteredSqlite(_Entered[sqlite3.Connection, T]):
    """An operation that has entered, in SQLite."""

    def done(self, result: T) -> T:
        """Keep an action's `result`, to be given again, and return it."""
        written = self._written(result)
        self._connection.execute(_LITE_DONE, (written, str(self._ctx.task), self._ctx.step))
        return result


class FenceInPostgres:
    """The fence seen through one connection. Leave the isolation level as it is (READ COMMITTED);
    a stricter one turns a wait for another operation into a serialization failure."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    async def install(self) -> None:
        """Create the table if it is not there, in the schema that comes first in `search_path`."""
        await self._connection.execute(POSTGRES_DDL)

    @overload
    async def enter(self, ctx: Context) -> EnteredPostgres[Any]: ...
    @overload
    async def enter(self, ctx: Context, of: type[T]) -> EnteredPostgres[T]: ...
    async def enter(self, ctx: Context, of: Any = Any) -> EnteredPostgres[Any]:
        """Enter `ctx`'s operation, whose action results in `of` (default: plain JSON).

        Waits while another one of the same step is inside. Raises Suspended.
        """
        if not self._connection.is_in_transaction():
            raise HeadwayError(_NO_TRANSACTION)
        adapter: TypeAdapter[Any] = TypeAdapter(of)
        key = (ctx.task, ctx.step)
        row: _Row | None = None
        if await self._connection.fetchrow(_PG_INSERT, *key, _FIRST_STATE[ctx.phase]) is None:
            row = _Row(*await self._connection.fetchrow(_PG_LOCK, *key))
        entered = EnteredPostgres(self._connection, ctx, adapter, row)
        if not entered.result_known and row is not None:
            await self._connection.execute(_PG_COMPENSATED, *key)
        return entered

    async def forget_before(self, moment: datetime) -> None:
        """Delete the rows last changed before `moment`, which is aware of its time zone.

        A row must outlive whatever may still arrive for its step: the task itself with its longest
        timeouts, and the time that its messages are kept. 30 days are ample.
        """
        await self._connection.execute(_PG_FORGET, moment)


class FenceInSqlite:
    """The fence seen through one connection, whose transactions begin by themselves (the default)
    or with BEGIN IMMEDIATE."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def install(self) -> None:
        """Create the table if it is not there; commits an open transaction."""
        self._connection.executescript(SQLITE_DDL)

    @overload
    def enter(self, ctx: Context) -> EnteredSqlite[Any]: ...
    @overload
    def enter(self, ctx: Context, of: type[T]) -> EnteredSqlite[T]: ...
    def enter(self, ctx: Context, of: Any = Any) -> EnteredSqlite[Any]:
        """Enter `ctx`'s operation, whose action results in `of` (default: plain JSON).

        Waits while anybody else writes to the file, as long as the connection's `timeout` says.
        Raises Suspended.
        """
        if not self._connection.in_transaction and _commits_each(self._connection):
            raise HeadwayError(_NO_TRANSACTION)
        adapter: TypeAdapter[Any] = TypeAdapter(of)
        key = (str(ctx.task), ctx.step)
        row: _Row | None = None
        if not self._connection.execute(_LITE_INSERT, (*key, _FIRST_STATE[ctx.phase])).rowcount:
            row = _Row(*self._connection.execute(_LITE_READ, key).fetchone())
        entered = EnteredSqlite(self._connection, ctx, adapter, row)
        if not entered.result_known and row is not None:
            self._connection.execute(_LITE_COMPENSATED, key)
        return entered

    def forget_before(self, moment: datetime) -> None:
        """As in PostgreSQL; commit it."""
        self._connection.execute(_LITE_FORGET, (int(moment.timestamp()),))


class Fence:
    """Where the fence stands: in the database at the other end of the caller's connection."""

    @staticmethod
    def postgres(connection: PostgresConnection) -> FenceInPostgres:
        return FenceInPostgres(connection)

    @staticmethod
    def sqlite(connection: sqlite3.Connection) -> FenceInSqlite:
        return FenceInSqlite(connection)


def _commits_each(connection: sqlite3.Connection) -> bool:
    """Whether each statement is a transaction of its own (Python 3.12 has `autocommit` for it)."""
    return connection.isolation_level is None or getattr(connection, "autocommit", None) is True
