"""The engine over a real store, with a bus that only remembers: who decides on what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import replace

import pytest
from harness.desk import SAGA, Desk
from headway.agents.identity import new_task_id
from headway.coordinator.recent import BUDGET_BYTES, TASK_MAX_BYTES, Recent
from headway.coordinator.records import Parent
from headway.coordinator.settled import KEPT_MAX, KEPT_MS, Settled
from headway.coordinator.store import Store
from headway.sagas import Saga, TaskStatus


@pytest.fixture
async def desks(postgres_url: str) -> AsyncIterator[tuple[Desk, Desk]]:
    stores = Store(postgres_url), Store(postgres_url)
    await stores[0].open()
    await stores[0].sagas.register(SAGA.define(), 1)
    yield Desk(stores[0]), Desk(stores[1])
    for store in stores:
        await store.close()


async def test_two_engines_that_take_turns_never_ack_an_event_on_a_stale_read(desks) -> None:
    """One engine's memory of the task is behind after each turn of the other."""
    one, other = desks
    task = new_task_id()
    await one.submit(task)
    for desk, step in ((one, "a"), (other, "b"), (one, "c")):
        assert (await desk.success(task, step)).changed
    [stored] = (await other.store.read([task])).values()
    assert stored.task.status == "succeeded"
    assert [sent.attributes["step"] for sent in one.bus.sent + other.bus.sent] == ["a", "b", "c"]


async def test_nothing_changes_is_decided_on_what_is_stored(desks) -> None:
    """For the engine that remembers step a as outstanding, b's success is impossible."""
    one, other = desks
    task = new_task_id()
    await one.submit(task)
    await other.success(task, "a")
    answer = await one.success(task, "b")
    assert answer.refusal is None
    assert answer.changed


async def test_an_event_that_came_before_changes_nothing_and_has_its_task_looked_after(
    desks,
) -> None:
    one, _ = desks
    task = new_task_id()
    await one.submit(task)
    await one.success(task, "a")
    assert not (await one.success(task, "a", repeated=True)).changed
    assert one.suspects == [task]


async def test_engines_that_race_over_one_task_commit_each_event_once(desks) -> None:
    task = new_task_id()
    await desks[0].submit(task)
    answers = await asyncio.gather(*(desk.success(task, "a") for desk in desks for _ in "123"))
    assert [answer.changed for answer in answers].count(True) == 1
    sent = [each.attributes["step"] for desk in desks for each in desk.bus.sent]
    assert sorted(sent) == ["a", "b"]


async def test_a_saga_version_registered_elsewhere_holds_at_once(desks) -> None:
    one, other = desks
    await one.submit(new_task_id())
    newer = Saga("pair", version=2).step("only", "x.a", read_only=True)
    await other.store.sagas.register(newer.define(), 2)
    task = new_task_id()
    assert (await one.submit(task)).changed
    [stored] = (await one.store.read([task])).values()
    assert stored.definition.version == 2


async def test_an_input_is_refused_by_the_newest_schema_and_not_by_an_older_one(desks) -> None:
    one, other = desks
    strict = Saga("pair", version=2, input={"type": "string"}).step("a", "x.a", read_only=True)
    await one.store.sagas.register(strict.define(), 2)
    assert (await one.submit(new_task_id())).refusal is not None
    loose = Saga("pair", version=3, input={"type": "integer"}).step("a", "x.a", read_only=True)
    await other.store.sagas.register(loose.define(), 3)
    assert (await one.submit(new_task_id())).refusal is None


async def test_the_same_submission_again_is_answered_by_what_is_stored(desks) -> None:
    one, other = desks
    task = new_task_id()
    assert (await one.submit(task)).changed
    for desk in (one, other):
        again = await desk.submit(task)
        assert (again.changed, again.refusal) == (False, None)
        assert "another body" in str((await desk.submit(task, b"2")).refusal)


async def test_memory_keeps_to_its_budget_and_forgets_the_oldest(desks) -> None:
    one, _ = desks
    task = new_task_id()
    await one.submit(task)
    [loaded] = (await one.store.read([task])).values()
    recent, ids = Recent(), [new_task_id() for _ in range(BUDGET_BYTES // TASK_MAX_BYTES + 2)]
    for each in ids:
        recent.keep(replace(loaded, id=each), TASK_MAX_BYTES)
    assert list(recent.look(ids)) == ids[2:]
    recent.keep(replace(loaded, id=ids[-1]), TASK_MAX_BYTES + 1)
    assert ids[-1] not in recent.look(ids)
    recent.forget(ids)
    assert recent.look(ids) == {}


async def test_a_task_that_ended_is_at_hand_for_a_moment_and_who_waits_hears_of_it(desks) -> None:
    one, _ = desks
    task = new_task_id()
    await one.submit(task)
    [running] = (await one.store.read([task])).values()
    ended = replace(running, task=replace(running.task, status=TaskStatus.SUCCEEDED))
    settled = Settled(lambda task: nullcontext(asyncio.Event()))
    async with settled.coming(task) as one_news, settled.coming(task) as other_news:
        settled.keep(ended, 5_000)
        assert one_news.is_set()
        assert other_news.is_set()
    assert settled.look(task, 5_000 + KEPT_MS - 1) is ended
    assert settled.look(task, 5_000 + KEPT_MS) is None
    for _ in range(KEPT_MAX):
        settled.keep(replace(ended, id=new_task_id()), 5_000)
    assert settled.look(task, 5_000) is None


async def test_a_child_that_ended_is_read_each_time_for_its_parent_may_undo_it(desks) -> None:
    one, _ = desks
    task = new_task_id()
    await one.submit(task)
    [running] = (await one.store.read([task])).values()
    ended = replace(running, task=replace(running.task, status=TaskStatus.SUCCEEDED))
    settled = Settled(lambda task: nullcontext(asyncio.Event()))
    settled.keep(replace(ended, parent=Parent(new_task_id(), "step", 1)), 5_000)
    assert settled.look(task, 5_000) is None


async def test_who_waits_for_a_task_that_a_peer_ends_is_told_by_the_news() -> None:
    news, looks = asyncio.Event(), [None, None]

    async def look() -> None:
        news.set()
        return looks.pop()

    settled = Settled(lambda task: nullcontext(news))
    assert await asyncio.wait_for(settled.once(new_task_id(), look, look, 60), 5) is None
    assert looks == []
