"""The fence on real databases, a PostgreSQL and a SQLite file: the same story told of both."""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from headway.agents import EMPTY, Context, HeadwayError, InvalidInput, reports, testing
from headway.agents.fence import Fence, Suspended
from pydantic import BaseModel

WAIT_S = 10.0  # for a lock that another transaction holds
INTERLEAVINGS = 200
CREATE_EFFECTS = "CREATE TABLE effects (step text, amount integer)"

Between = Callable[[], Awaitable[None]]


class Receipt(BaseModel):
    number: int


class Crash(Exception):
    """The process dies, and nothing of its transaction is left."""


async def nothing() -> None:
    """Between an effect and its end."""


async def crash() -> None:
    raise Crash


def _step(ctx: Context) -> str:
    return f"{ctx.task}/{ctx.step}"


class InPostgres:
    """Handlers that charge and refund in PostgreSQL."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool

    async def charge(self, ctx: Context, number: int, between: Between = nothing) -> Receipt:
        async with self.pool.acquire() as connection, connection.transaction():
            fence = await Fence.postgres(connection).enter(ctx, Receipt)
            if fence.result_known:
                return fence.result
            await connection.execute("INSERT INTO effects VALUES ($1, 1)", _step(ctx))
            await between()
            return await fence.done(Receipt(number=number))

    async def refund(self, ctx: Context, between: Between = nothing) -> Any:
        async with self.pool.acquire() as connection, connection.transaction():
            fence = await Fence.postgres(connection).enter(ctx, Receipt)
            if fence.result_known:
                return fence.result
            await connection.execute("INSERT INTO effects VALUES ($1, -1)", _step(ctx))
            await between()
            return fence.action_result

    async def effects(self, ctx: Context) -> list[int]:
        rows = await self.pool.fetch("SELECT amount FROM effects WHERE step = $1", _step(ctx))
        return sorted((row["amount"] for row in rows), reverse=True)

    async def forget_before(self, moment: datetime) -> None:
        async with self.pool.acquire() as connection:
            await Fence.postgres(connection).forget_before(moment)


class InSqlite:
    """Sync handlers that charge and refund in a SQLite file, each in a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(self.open()) as db:
            db.execute("PRAGMA journal_mode = wal")
            db.execute(CREATE_EFFECTS)
            Fence.sqlite(db).install()
            Fence.sqlite(db).install()

    def open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=WAIT_S)

    async def charge(self, ctx: Context, number: int, between: Between = nothing) -> Receipt:
        return await asyncio.to_thread(self._charge, ctx, number, _awaited(between))

    def _charge(self, ctx: Context, number: int, between: Callable[[], None]) -> Receipt:
        with closing(self.open()) as db, db:
            fence = Fence.sqlite(db).enter(ctx, Receipt)
            if fence.result_known:
                return fence.result
            db.execute("INSERT INTO effects VALUES (?, 1)", (_step(ctx),))
            between()
            return fence.done(Receipt(number=number))

    async def refund(self, ctx: Context, between: Between = nothing) -> Any:
        return await asyncio.to_thread(self._refund, ctx, _awaited(between))

    def _refund(self, ctx: Context, between: Callable[[], None]) -> Any:
        with closing(self.open()) as db, db:
            fence = Fence.sqlite(db).enter(ctx, Receipt)
            if fence.result_known:
                return fence.result
            db.execute("INSERT INTO effects VALUES (?, -1)", (_step(ctx),))
            between()
            return fence.action_result

    async def effects(self, ctx: Context) -> list[int]:
        with closing(self.open()) as db:
            rows = db.execute("SELECT amount FROM effects WHERE step = ?", (_step(ctx),)).fetchall()
        return sorted((amount for (amount,) in rows), reverse=True)

    async def forget_before(self, moment: datetime) -> None:
        with closing(self.open()) as db, db:
            Fence.sqlite(db).forget_before(moment)


def _awaited(between: Between) -> Callable[[], None]:
    """`between` for a thread, which waits while the loop runs it."""
    loop = asyncio.get_running_loop()
    return lambda: asyncio.run_coroutine_threadsafe(between(), loop).result()


Database = InPostgres | InSqlite


@pytest.fixture
async def pool(postgres_url: str) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(postgres_url, min_size=2, max_size=8) as pool:
        yield pool


@pytest.fixture(params=["postgres", "sqlite"])
async def database(request: pytest.FixtureRequest, pool: asyncpg.Pool, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return InSqlite(tmp_path / "agent.db")
    await pool.execute(CREATE_EFFECTS)
    async with pool.acquire() as one, pool.acquire() as other:
        await asyncio.gather(Fence.postgres(one).install(), Fence.postgres(other).install())
    return InPostgres(pool)


@pytest.fixture
def action() -> Context:
    return testing.context(step="charge")


@pytest.fixture
def compensation(action: Context) -> Context:
    return replace(action, phase="compensation", outcome_unknown=True)


async def test_an_action_that_comes_again_has_the_same_result_and_no_other_effect(
    database: Database, action: Context
) -> None:
    first = await database.charge(action, 7)
    again = await database.charge(replace(action, attempt=2, epoch=1), 8)
    assert first == again == Receipt(number=7)
    assert await database.effects(action) == [1]


async def test_other_steps_and_tasks_are_other_operations(
    database: Database, action: Context
) -> None:
    for ctx in (action, replace(action, step="other"), testing.context(step="charge")):
        await database.charge(ctx, 1)
        assert await database.effects(ctx) == [1]


async def test_a_crash_between_effect_and_result_leaves_nothing_and_the_next_attempt_does_it(
    database: Database, action: Context
) -> None:
    with pytest.raises(Crash):
        await database.charge(action, 7, crash)
    assert await database.effects(action) == []
    assert await database.charge(action, 8) == Receipt(number=8)
    assert await database.effects(action) == [1]


async def test_a_compensation_undoes_once_and_is_told_the_result(
    database: Database, action: Context, compensation: Context
) -> None:
    await database.charge(action, 7)
    with pytest.raises(Crash):
        await database.refund(compensation, crash)
    assert await database.effects(action) == [1]
    assert await database.refund(compensation) == Receipt(number=7)
    assert await database.refund(replace(compensation, attempt=2)) is None
    assert await database.effects(action) == [1, -1]


async def test_a_compensation_of_what_never_happened_is_empty_each_time(
    database: Database, action: Context, compensation: Context
) -> None:
    assert await database.refund(compensation) is EMPTY
    assert await database.refund(replace(compensation, attempt=2)) is EMPTY
    assert await database.effects(action) == []


@pytest.mark.parametrize("happened", [True, False], ids=["compensated", "suspended"])
async def test_an_action_after_its_compensation_is_refused_as_without_effect(
    database: Database, action: Context, compensation: Context, happened: bool
) -> None:
    if happened:
        await database.charge(action, 7)
    await database.refund(compensation)
    effects = await database.effects(action)
    with pytest.raises(Suspended) as refused:
        await database.charge(replace(action, attempt=2), 8)
    assert await database.effects(action) == effects
    assert str(refused.value) == (
        f"step 'charge' of task {action.task} comes after its compensation and must not happen now"
    )
    error = reports.failure_of(refused.value).error
    assert error is not None
    assert (error.type, error.retryable, error.noeffect) == ("Suspended", False, True)


async def test_a_zombie_and_its_successor_apply_one_effect_and_answer_alike(
    database: Database, action: Context
) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def linger() -> None:
        inside.set()
        await leave.wait()

    zombie = asyncio.create_task(database.charge(action, 7, linger))
    await inside.wait()
    successor = asyncio.create_task(database.charge(replace(action, epoch=1), 8))
    assert not (await asyncio.wait({successor}, timeout=0.2))[0], "it waits in `enter`"
    leave.set()
    assert await successor == await zombie == Receipt(number=7)
    assert await database.effects(action) == [1]


async def test_a_compensation_waits_for_an_action_that_is_inside_and_undoes_it(
    database: Database, action: Context, compensation: Context
) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def linger() -> None:
        inside.set()
        await leave.wait()

    acting = asyncio.create_task(database.charge(action, 7, linger))
    await inside.wait()
    undoing = asyncio.create_task(database.refund(compensation))
    assert not (await asyncio.wait({undoing}, timeout=0.2))[0], "it waits in `enter`"
    leave.set()
    assert await acting == await undoing == Receipt(number=7)
    assert await database.effects(action) == [1, -1]


async def test_who_waited_for_one_that_crashed_does_the_work(
    database: Database, action: Context
) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def linger_and_crash() -> None:
        inside.set()
        await leave.wait()
        raise Crash

    doomed = asyncio.create_task(database.charge(action, 7, linger_and_crash))
    await inside.wait()
    successor = asyncio.create_task(database.charge(replace(action, epoch=1), 8))
    leave.set()
    assert await successor == Receipt(number=8)
    with pytest.raises(Crash):
        await doomed
    assert await database.effects(action) == [1]


async def test_an_operation_is_forgotten_when_its_row_is_older_than_asked(
    database: Database, action: Context
) -> None:
    await database.charge(action, 7)
    now = datetime.now(UTC)
    await database.forget_before(now - timedelta(days=30))
    assert await database.charge(action, 8) == Receipt(number=7)
    await database.forget_before(now + timedelta(days=1))
    assert await database.charge(action, 9) == Receipt(number=9)


async def test_random_interleavings_apply_and_undo_once_and_tell_one_story(
    database: Database,
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed of the interleavings: {seed}\n")
    rng = random.Random(seed)
    for _ in range(INTERLEAVINGS):
        await _interleave(database, rng)


async def _interleave(database: Database, rng: random.Random) -> None:
    """A few attempts and compensations at once, some of which crash; then one of each, calmly."""
    action = testing.context(step="charge")
    compensation = replace(action, phase="compensation")

    def between(crashes: bool, turns: int) -> Between:
        async def pause() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            if crashes:
                raise Crash

        return pause

    async def one(ctx: Context, number: int, late: int, pause: Between) -> Any:
        for _ in range(late):
            await asyncio.sleep(0)
        if ctx.phase == "action":
            return await database.charge(ctx, number, pause)
        return await database.refund(ctx, pause)

    ways = rng.choice([(action,), (action, action, compensation), (action, compensation)])
    plan = [
        one(rng.choice(ways), n, rng.randrange(20), between(rng.random() < 0.3, rng.randrange(20)))
        for n in range(rng.randint(2, 4))
    ]
    answers = await asyncio.gather(*plan, return_exceptions=True)
    effects = await database.effects(action)
    calm = await database.refund(compensation)
    assert all(
        isinstance(each, Receipt | Crash | Suspended | None) or each is EMPTY for each in answers
    ), answers
    receipts = {each.number for each in [*answers, calm] if isinstance(each, Receipt)}
    assert len(receipts) <= 1, "all are told the same number"
    assert effects in ([], [1], [1, -1])
    assert bool(effects) == bool(receipts)
    assert (calm is EMPTY) == (effects == [])
    assert (calm is None) == (effects == [1, -1])
    with pytest.raises(Suspended):
        await database.charge(action, 99)
    assert await database.effects(action) == ([1, -1] if effects else [])


async def test_without_a_type_a_result_comes_back_as_plain_json(
    database: Database, action: Context
) -> None:
    if isinstance(database, InSqlite):
        with closing(database.open()) as db, db:
            entered = Fence.sqlite(db).enter(action)
            assert entered.done({"at": datetime(2026, 1, 2)}) == {"at": datetime(2026, 1, 2)}
        with closing(database.open()) as db, db:
            assert Fence.sqlite(db).enter(action).result == {"at": "2026-01-02T00:00:00"}
        return
    async with database.pool.acquire() as connection:
        async with connection.transaction():
            entered = await Fence.postgres(connection).enter(action)
            await entered.done({"at": datetime(2026, 1, 2)})
        async with connection.transaction():
            entered = await Fence.postgres(connection).enter(action)
            assert entered.result == {"at": "2026-01-02T00:00:00"}


async def test_a_stored_result_of_another_shape_is_refused_by_name(
    database: Database, action: Context
) -> None:
    wanted = re.escape(
        f"headway_fence: result of step 'charge' of task {action.task}: number: Field required"
    )
    if isinstance(database, InSqlite):
        with closing(database.open()) as db, db:
            Fence.sqlite(db).enter(action).done({"numero": 7})
    else:
        async with database.pool.acquire() as connection, connection.transaction():
            await (await Fence.postgres(connection).enter(action)).done({"numero": 7})
    with pytest.raises(InvalidInput, match=f"^{wanted}$"):
        await database.charge(action, 8)


async def test_a_known_result_is_not_replaced(database: Database, action: Context) -> None:
    await database.charge(action, 7)
    wanted = re.escape(
        f"step 'charge' of task {action.task} was done before; return the result known to the fence"
    )
    with pytest.raises(HeadwayError, match=f"^{wanted}$"):
        await _done_again(database, action)
    assert await database.charge(action, 9) == Receipt(number=7)


async def _done_again(database: Database, action: Context) -> None:
    if isinstance(database, InSqlite):
        with closing(database.open()) as db, db:
            Fence.sqlite(db).enter(action).done(8)
    else:
        async with database.pool.acquire() as connection, connection.transaction():
            await (await Fence.postgres(connection).enter(action)).done(8)


OUTSIDE = (
    "^the fence is entered outside of a transaction; begin the one that the effect is written in$"
)


async def test_outside_of_a_transaction_nobody_enters_in_postgresql(
    pool: asyncpg.Pool, action: Context
) -> None:
    async with pool.acquire() as connection:
        with pytest.raises(HeadwayError, match=OUTSIDE):
            await Fence.postgres(connection).enter(action)


async def test_outside_of_a_transaction_nobody_enters_in_sqlite(
    tmp_path: Path, action: Context
) -> None:
    with closing(InSqlite(tmp_path / "agent.db").open()) as db:
        db.isolation_level = None
        with pytest.raises(HeadwayError, match=OUTSIDE):
            Fence.sqlite(db).enter(action)
        db.execute("BEGIN IMMEDIATE")
        assert not Fence.sqlite(db).enter(action).result_known
        db.rollback()
