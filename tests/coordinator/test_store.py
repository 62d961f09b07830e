"""The store against a real PostgreSQL: versions decide, batches are whole, locks are ordered."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import asyncpg
import orjson
import pytest
from harness.eventually import eventually
from headway.agents.identity import new_task_id
from headway.coordinator.errors import Refusal, StoreRefused, StoreUnavailable
from headway.coordinator.queries import QUERIES
from headway.coordinator.records import Change, Loaded, NewTask
from headway.coordinator.store import Store
from headway.sagas import Phase, Saga, transition
from headway.sagas import inputs as i
from headway.sagas.attempts import CLAIMS_MAX
from headway.sagas.codec import decode_event, encode_task
from headway.sagas.deadlines import due
from headway.sagas.replay import replay

SAGA = (
    Saga("pair")
    .step("a", "x.a", compensate="x.undo_a")
    .step("b", "x.b", compensate="x.undo_b", after="a")
    .define()
)


@pytest.fixture
async def store(postgres_url):
    store = Store(postgres_url)
    await store.open()
    await store.sagas.register(SAGA, 1)
    yield store
    await store.close()


@pytest.fixture(params=["alone", "among others"])
def commit(request, store):
    """Commits one change: by itself, or in a batch. Whether it went through."""

    async def one(change: Change) -> bool:
        others = [] if request.param == "alone" else [submission()]
        for other in others:
            other.new.version = 1
        lost = await store.commit([*others, change])
        assert lost <= {change.id}
        return not lost

    return one


def submission(task: UUID | None = None, task_input: bytes = b'{"n":1}') -> Change:
    outcome = transition(SAGA, None, i.Submit(1_000))
    new = NewTask(task or new_task_id(), "pair", task_input, b"digest")
    return Change(
        new.id,
        0,
        outcome.task,
        encode_task(outcome.task),
        due(SAGA, outcome.task),
        False,
        1_000,
        outcome.events,
        1,
        new,
    )


def after(loaded: Loaded, happened: i.Input) -> Change:
    outcome = transition(SAGA, loaded.task, happened)
    return Change(
        loaded.id,
        loaded.task.version,
        outcome.task,
        encode_task(outcome.task),
        due(SAGA, outcome.task),
        False,
        happened.at,
        outcome.events,
        1,
    )


async def load(store: Store, task: UUID) -> Loaded:
    return (await store.load([task]))[task]


async def test_what_was_committed_is_what_is_read(store, commit):
    change = submission(task_input=b'{"text":"\\u0000 and \xc3\xa4"}')
    assert await commit(change)
    loaded = await load(store, change.id)
    assert loaded.task == change.task
    assert loaded.input == b'{"text":"\\u0000 and \xc3\xa4"}'
    assert loaded.definition.digest == SAGA.digest


async def test_a_stale_version_goes_through_not_at_all_and_the_rest_of_its_batch_does(store):
    first, second = submission(), submission()
    await store.commit([first, second])
    one, two = await load(store, first.id), await load(store, second.id)
    step = i.Succeeded(2_000, "a", Phase.ACTION, 1, "result")
    stale = after(one, step)
    await store.commit([after(one, i.Cancel(1_500, "somebody", "wins"))])
    assert await store.commit([stale, after(two, step)]) == {first.id}
    assert (await load(store, second.id)).task.version == 4
    rows = await store.fetch("history", first.id, 0, 100)
    assert [row["version"] for row in rows] == list(range(1, len(rows) + 1))
    assert "StepCompleted" not in {row["type"] for row in rows}


async def test_a_stale_version_goes_through_not_at_all_whatever_it_is_committed_with(store, commit):
    change = submission()
    assert await commit(change)
    loaded = await load(store, change.id)
    stale = after(loaded, i.Succeeded(2_000, "a", Phase.ACTION, 1, "result"))
    assert await commit(after(loaded, i.Cancel(1_500, "somebody", "wins")))
    before = await store.fetch("history", change.id, 0, 100)
    assert not await commit(stale)
    assert await store.fetch("history", change.id, 0, 100) == before


async def test_a_new_task_of_the_newest_version_is_not_begun_on_an_older_one(store, commit):
    await store.sagas.register(Saga("pair", version=2).step("a", "x.a", read_only=True).define(), 2)
    change = submission()
    assert change.new.version is None
    assert not await commit(change)
    change.new.version = 1
    assert await commit(change)


async def test_a_task_that_cannot_be_read_keeps_no_other_from_its_turn(store, postgres_url, caplog):
    first, second = submission(), submission()
    await store.commit([first, second])
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("UPDATE headway.tasks SET state = '{}' WHERE id = $1", first.id)
    await connection.close()
    assert set(await store.read([first.id, second.id])) == {second.id}
    assert f"task {first.id} cannot be read: KeyError" in caplog.text
    with pytest.raises(KeyError):
        await store.load([first.id])


async def test_the_same_new_task_twice_is_inserted_once(store, commit):
    change = submission()
    assert await commit(change)
    assert not await commit(change)
    assert len(await store.fetch("history", change.id, 0, 100)) == len(change.events)


async def test_the_fold_of_the_stored_history_is_the_stored_state(store, commit):
    change = submission()
    assert await commit(change)
    for happened in (
        i.Succeeded(2_000, "a", Phase.ACTION, 1, {"k": [1, "ü"]}),
        i.Cancel(3_000, "me", "changed my mind"),
        i.Succeeded(4_000, "b", Phase.ACTION, 1, None),
        i.Succeeded(5_000, "b", Phase.COMPENSATION, 1, empty=True),
        i.Succeeded(6_000, "a", Phase.COMPENSATION, 1),
    ):
        assert await commit(after(await load(store, change.id), happened))
    loaded = await load(store, change.id)
    rows = await store.fetch("history", change.id, 0, 100)
    events = [
        decode_event(row["type"], round(row["at"].timestamp() * 1000), row["data"]) for row in rows
    ]
    assert loaded.task.status == "compensated"
    assert loaded.due_at is None
    assert replay(SAGA, events) == loaded.task


async def test_racing_batches_over_the_same_tasks_never_deadlock_and_lose_nothing(
    store, postgres_url
):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    changes = [submission() for _ in range(40)]
    await store.commit(changes)
    other = Store(postgres_url)
    wins: dict[UUID, int] = {change.id: 0 for change in changes}

    async def race(mine: Store) -> None:
        for _ in range(15):
            batch = rng.sample([change.id for change in changes], 20)
            loaded = await mine.load(batch)
            lost = await mine.commit(
                [
                    after(
                        loaded[task],
                        i.ClaimAsked(
                            2_000,
                            "a",
                            Phase.ACTION,
                            1,
                            claim(loaded[task].task.version),
                        ),
                    )
                    for task in batch
                    if loaded[task].task.steps["a"].claims < CLAIMS_MAX
                ]
            )
            for task in batch:
                wins[task] += task not in lost and loaded[task].task.steps["a"].claims < CLAIMS_MAX

    await asyncio.gather(race(store), race(store), race(other), race(other))
    final = await store.load(list(wins))
    assert {task: final[task].task.steps["a"].claims for task in wins} == wins
    await other.close()


def claim(number: int):
    return i.Claim(0, number, "worker")


async def test_rows_are_locked_in_id_order(store, postgres_url):
    """One batch holds the lowest id; one that wants all waits there and holds no others."""
    changes = sorted((submission() for _ in range(3)), key=lambda change: change.id)
    await store.commit(changes)
    loaded = await store.load([change.id for change in changes])
    holder = await asyncpg.connect(postgres_url)
    watcher = await asyncpg.connect(postgres_url)
    transaction = holder.transaction()
    await transaction.start()
    await holder.fetch("SELECT id FROM headway.tasks WHERE id = $1 FOR UPDATE", changes[0].id)
    step = i.Succeeded(2_000, "a", Phase.ACTION, 1)
    batch = [after(loaded[change.id], step) for change in reversed(changes)]
    committing = asyncio.create_task(store.commit(batch))
    await eventually(lambda: blocked(watcher), what="the batch waits for the lock")
    for change in changes[1:]:
        row = await watcher.fetchrow(
            "SELECT id FROM headway.tasks WHERE id = $1 FOR UPDATE SKIP LOCKED", change.id
        )
        assert row is not None, "a later row was locked before the first one"
    await transaction.rollback()
    assert await committing == set()
    await holder.close()
    await watcher.close()


async def blocked(watcher: asyncpg.Connection) -> bool:
    return await watcher.fetchval(
        "SELECT count(*) > 0 FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND application_name = 'headway'"
    )


async def test_due_tasks_are_claimed_by_one_and_come_back_after_the_lease(store, postgres_url):
    changes = [submission() for _ in range(10)]
    await store.commit(changes)
    due_at = changes[0].due
    other = Store(postgres_url)
    assert await store.claim_due(due_at - 1, 5_000, 100) == []
    mine, theirs = await asyncio.gather(
        store.claim_due(due_at, 5_000, 5), other.claim_due(due_at, 5_000, 5)
    )
    assert not set(mine) & set(theirs)
    rest = await store.claim_due(due_at, 5_000, 100)
    assert {*mine, *theirs, *rest} == {change.id for change in changes}
    assert await store.claim_due(due_at + 4_999, 5_000, 100) == []
    assert len(await store.claim_due(due_at + 5_000, 5_000, 100)) == 10
    await other.close()


async def test_a_timer_is_not_put_off_for_a_task_that_changed_meanwhile(store):
    change = submission()
    await store.commit([change])
    await store.postpone([(change.id, change.task.version - 1, 99_000)])
    assert (await load(store, change.id)).due_at.timestamp() * 1000 == change.due
    await store.postpone([(change.id, change.task.version, 99_000)])
    assert (await load(store, change.id)).due_at.timestamp() == 99


async def test_the_same_version_with_another_definition_is_refused(store):
    other = Saga("pair").step("a", "y.a", read_only=True).define()
    with pytest.raises(Refusal, match="another definition: raise the version"):
        await store.sagas.register(other, 2)
    assert await store.sagas.register(SAGA, 3) is not None


async def test_newest_versions_are_read_fresh(store, postgres_url):
    other = Store(postgres_url)
    second = Saga("pair", version=2).step("a", "x.a", read_only=True).define()
    assert (await store.sagas.newest(["pair", "none"], fresh=True))["pair"].version == 1
    await other.sagas.register(second, 2)
    assert (await store.sagas.newest(["pair"], fresh=True))["pair"].version == 2
    assert (await store.sagas.newest(["none"], fresh=True)) == {}
    await other.close()


async def test_a_row_that_postgresql_refuses_is_not_an_outage(commit):
    change = submission()
    change.new.attributes["nul"] = "\0"
    with pytest.raises(StoreRefused):
        await commit(change)


async def test_an_outage_is_reported_as_one_and_the_store_comes_back(postgres_server):
    store = Store(postgres_server.url)
    await store.open()
    await store.sagas.register(SAGA, 1)
    change = submission()
    await store.commit([change])
    await postgres_server.kill()
    with pytest.raises(StoreUnavailable):
        await store.load([change.id])
    await postgres_server.start()
    assert (await load(store, change.id)).task == change.task
    await store.close()


async def test_hot_statements_use_their_indexes_whatever_the_table_size(store, postgres_url):
    await store.commit([submission() for _ in range(300)])
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("ANALYZE headway.tasks")
    for statement, index in (
        (
            "SELECT id FROM headway.tasks WHERE due_at <= to_timestamp(1) ORDER BY due_at LIMIT 10",
            "tasks_due",
        ),
        (
            "SELECT id FROM headway.tasks WHERE id > '00000000-0000-0000-0000-000000000000'"
            " AND status NOT IN ('succeeded', 'compensated') ORDER BY id LIMIT 10",
            "tasks_open",
        ),
    ):
        await connection.execute("SET enable_seqscan = off")
        plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement}")
        assert index in orjson.dumps(orjson.loads(plan)).decode()
    await connection.close()


async def test_a_statement_is_planned_once_a_connection_and_not_for_each_execution(
    store, monkeypatch
):
    monkeypatch.setitem(
        QUERIES,
        "plans",
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
        " WHERE name = 'commit_batch'",
    )
    for _ in range(20):
        await store.commit([submission(), submission()])
    [plans] = await store._engine.fetch("plans")
    assert dict(plans) == {"generic_plans": 20, "custom_plans": 0}
