"""The audit log: all that was done is in it once, page by page, for a task or for all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import asyncpg
import orjson
import pytest
from harness.journals import NOW, Holder, Office, holding, intent, one_database, result, usage
from harness.services import RunningPostgres
from headway.agents.auditing import AuditPage, AuditRequest
from headway.agents.entries import NewEntry
from headway.agents.identity import new_task_id
from headway.coordinator.audits import Audits
from headway.coordinator.errors import Refusal
from headway.coordinator.store import Store
from headway.sagas import inputs as i

ANY_TASK = "018bcfe5-6800-7000-8000-000000000001"
AT = datetime.fromtimestamp(NOW / 1000, UTC)


@pytest.fixture(scope="module")
def database(shared_postgres: RunningPostgres) -> Iterator[str]:
    with one_database(shared_postgres) as url:
        yield url


@pytest.fixture
async def office(database: str) -> AsyncIterator[Office]:
    store = Store(database)
    yield Office(store)
    await store.close()


async def page(office: Office, **asked) -> AuditPage:
    return await Audits(office.store).page(AuditRequest(**asked))


async def a_day_at_the_office(office: Office) -> Holder:
    """A call that failed to be answered, a person who looked, and another who gave up."""
    holder = await holding(office)
    await holder.append(intent(sensitive=True, data={"amount": 5}))
    await holder.append(NewEntry(kind="checkpoint", data={"at": 1}))
    await office.failed(holder.task, hold=True)
    await holder.settle("pay#1", "happened", result=7, by="ann", reason="the bank says so")
    loaded = await office.resumed(holder.task)
    holder.attempt, holder.worker = loaded.task.steps["do"].attempt, "second"
    await holder.open()
    await holder.append(intent("think"), result("think", usage=usage(9)))
    await office.happen(holder.task, i.Cancel(NOW, "bob", "enough"))
    return holder


async def test_all_that_was_done_is_told_with_who_and_why(office):
    holder = await a_day_at_the_office(office)
    found = await page(office, task=holder.task)
    told = [
        (entry.kind, entry.step, entry.who, entry.what, entry.reason) for entry in found.entries
    ]
    acts, calls = told[:-4], told[-4:]
    assert [act[:3] for act in acts] == [
        ("TaskHeld", "do", ""),
        ("TaskResumed", "", "ann"),
        ("RecoveryStarted", "", "bob"),
    ]
    assert [act[4] for act in acts[1:]] == ["looked", "enough"]
    assert calls == [
        ("intent", "do", "clerk", "pay", ""),
        ("result", "do", "ann", "pay", "the bank says so"),
        ("intent", "do", "clerk", "think", ""),
        ("result", "do", "clerk", "think", ""),
    ]
    assert {entry.at for entry in found.entries} == {AT}
    first, last = found.entries[-4], found.entries[-1]
    assert first.data == {
        "phase": "action",
        "seq": 1,
        "epoch": 1,
        "key": "pay#1",
        "sensitive": True,
        "arguments_digest": "d",
    }
    assert last.data["usage"] == {"input_tokens": 9}
    assert last.data["seq"] == 5
    assert not found.more


async def test_values_are_told_by_their_digest_alone(office):
    holder = await holding(office)
    await holder.append(intent(data="the text of a letter"))
    [entry] = (await page(office, task=holder.task)).entries
    assert "letter" not in entry.model_dump_json()


async def test_pages_follow_each_other_without_a_gap_or_a_repetition(office):
    tasks = [(await a_day_at_the_office(office)).task for _ in range(4)]
    whole = (await page(office, limit=500)).entries
    assert [(entry.at, entry.task) for entry in whole] == sorted(
        (entry.at, entry.task) for entry in whole
    )
    assert set(tasks) <= {entry.task for entry in whole}
    for limit in (1, 3, len(whole)):
        found, cursor, more = [], "", True
        while more:
            part = await page(office, limit=limit, after=cursor)
            found, cursor, more = found + part.entries, part.cursor, part.more
        assert found == whole
    rest = await page(office, after=cursor)
    assert (rest.entries, rest.cursor, rest.more) == ([], cursor, False)
    later = await a_day_at_the_office(office)
    new = await page(office, after=cursor)  # ids of tasks grow with time
    assert {entry.task for entry in new.entries} == {later.task}
    assert new.entries == (await page(office, task=later.task)).entries
    assert new.entries == (await page(office, task=later.task, after=cursor)).entries


async def test_a_time_bounds_what_is_told(office):
    holder = await a_day_at_the_office(office)
    second = timedelta(seconds=1)
    for since, until, there in (
        (AT, AT + second, True),
        (AT + second, None, False),
        (None, AT, False),
        (AT - second, None, True),
    ):
        for asked in ({"task": holder.task}, {}):
            found = await page(office, since=since, until=until, limit=500, **asked)
            assert (holder.task in {entry.task for entry in found.entries}) is there


async def test_who_gives_no_name_is_told_of_all_the_same(office):
    holder = await holding(office)
    await office.failed(holder.task, hold=True)
    await office.happen(holder.task, i.RetryStuck(NOW, "", ""), i.Tick(NOW), i.Cancel(NOW, "", ""))
    kinds = [entry.kind for entry in (await page(office, task=holder.task)).entries]
    assert kinds == ["TaskHeld", "TaskResumed", "RecoveryStarted"]


async def test_what_nobody_did_and_tasks_that_are_not_there_are_not_told(office):
    task = await office.submit()
    await office.failed(task)
    assert (await page(office, task=task)).entries == []
    nothing = await page(office, task=new_task_id())
    assert (nothing.entries, nothing.cursor, nothing.more) == ([], "", False)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "\0",
        "2026-01-01 a b",
        f"{AT.isoformat()} x y",
        f"2026-01-01T00:00:00 {ANY_TASK} y",
        f"{AT.isoformat()} {ANY_TASK} a\0",
    ],
)
async def test_a_cursor_that_was_made_up_is_refused(office, cursor):
    with pytest.raises(Refusal) as caught:
        await page(office, after=cursor)
    assert (caught.value.code, caught.value.reason) == (
        422,
        "after: not a cursor that this API gave",
    )


async def test_a_nul_in_an_agents_words_does_not_hide_what_was_done(office, database):
    """PostgreSQL cannot look into JSON that has one."""
    task = await office.submit()
    connection = await asyncpg.connect(database)
    data = orjson.dumps({"step": "do", "by": "ann", "result": "a\0b", "status": "completed"})
    await connection.execute(
        "INSERT INTO headway.task_events VALUES ($1, 99, 'StepSettled', now(), $2)",
        *(task, data.decode()),
    )
    await connection.close()
    [entry] = (await page(office, task=task)).entries
    assert (entry.kind, entry.who, entry.what) == ("StepSettled", "ann", "completed")
    assert entry.data["result"] == "a\0b"


async def test_the_log_of_all_tasks_is_read_along_its_indexes(office, database):
    connection = await asyncpg.connect(database)
    await connection.execute("SET enable_seqscan = off")
    lines = await connection.fetch(
        "EXPLAIN SELECT * FROM headway.audit WHERE at >= now() ORDER BY at, task_id, id LIMIT 10"
    )
    await connection.close()
    plan = "\n".join(line[0] for line in lines)
    assert "Seq Scan" not in plan, plan
    assert "Incremental Sort" in plan, plan
