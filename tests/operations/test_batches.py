"""One act on many tasks: what a filter means, page by page, each with an outcome of its own."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from harness.eventually import eventually
from headway.agents import Client
from headway.agents.batch_views import BatchReply
from headway.agents.errors import InvalidInput, Refused
from headway.agents.gates import REASON_MAX_CHARS
from headway.coordinator.errors import StoreUnavailable


def marked() -> dict[str, str]:
    """An attribute that only the tasks of one test have."""
    return {"test": uuid4().hex}


async def statuses(client: Client, mark: dict[str, str]) -> dict[UUID, str]:
    page = await client.list(attributes=mark, limit=500)
    return {row.task: row.status for row in page.tasks}


async def pages(client: Client, action: Any, **asked: Any) -> list[BatchReply]:
    replies = [await client.batch(action, **asked)]
    while replies[-1].cursor is not None:
        replies.append(await client.batch(action, cursor=replies[-1].cursor, **asked))
    return replies


async def test_all_that_are_meant_are_cancelled_and_no_others(world, client):
    mark, other = marked(), marked()
    tasks = [await world.held(attributes=mark) for _ in range(5)]
    spared = await world.held(attributes=other)
    await world.ended((await client.submit("plain", {}, attributes=mark)).task)
    asked = {"attributes": mark, "reason": "recall", "by": "ann"}
    planned = await client.batch("cancel", dry_run=True, **asked)
    assert (planned.matched, planned.done, planned.refused) == (5, 5, [])
    assert set((await statuses(client, mark)).values()) == {"running", "succeeded"}
    done = await client.batch("cancel", **asked)
    assert done == planned
    assert set(done.tasks) == set(tasks)
    for task in tasks:
        assert (await world.ended(task)).status == "compensated"
        acts = [entry async for entry in client.audit(task) if entry.kind == "RecoveryStarted"]
        assert [(act.who, act.reason) for act in acts] == [("ann", "recall")]
    assert (await client.status(spared)).status == "running"
    again = await client.batch("cancel", **asked)
    assert (again.matched, again.done, again.cursor) == (0, 0, None)
    await client.cancel(spared)


async def test_pages_go_on_with_what_there_was_at_the_first_one(world, client):
    mark = marked()
    tasks = [await world.held(attributes=mark) for _ in range(7)]
    first = await client.batch("cancel", attributes=mark, limit=3)
    assert (first.tasks, first.cursor) == (sorted(tasks)[:-4:-1], str(sorted(tasks)[-3]))
    late = await world.held(attributes=mark)
    rest = [first]
    while rest[-1].cursor is not None:
        rest.append(await client.batch("cancel", attributes=mark, limit=3, cursor=rest[-1].cursor))
    assert [reply.matched for reply in rest] == [3, 3, 1]
    assert [task for reply in rest for task in reply.tasks] == sorted(tasks, reverse=True)
    assert (await client.status(late)).status == "running"
    await client.cancel(late)


async def test_each_task_is_refused_by_itself_and_a_dry_run_knows(world, client):
    mark = marked()
    parked = [await world.parked(attributes=mark) for _ in range(2)]
    held = await world.held(attributes=mark)
    asked = {"attributes": mark, "status": ["running", "parked"]}
    planned = await client.batch("cancel", dry_run=True, **asked)
    done = await client.batch("cancel", **asked)
    assert planned == done
    assert done.tasks == [held]
    assert {refusal.task for refusal in done.refused} == set(parked)
    assert {(refusal.code, refusal.reason) for refusal in done.refused} == {
        (
            409,
            "step 'a', the point of no return, has been dispatched; from here the task can only "
            "go forward",
        )
    }


@pytest.mark.parametrize("action", ["retry", "resume"])
async def test_all_that_is_parked_goes_on(world, client, action):
    mark = marked()
    tasks = [await world.parked(attributes=mark) for _ in range(4)]
    before = {task: world.office.log[task].count("b") for task in tasks}
    running = await world.held(attributes=mark)
    reply = await client.batch(action, attributes=mark, by="ann")
    assert (reply.matched, reply.done) == (4, 4)

    async def parked_again() -> bool:
        tried = all(world.office.log[task].count("b") > before[task] for task in tasks)
        found = await statuses(client, mark)
        return tried and all(found[task] == "parked" for task in tasks)

    await eventually(parked_again)
    refused = await client.batch(action, attributes=mark, status=["running"])
    [refusal] = refused.refused
    assert (refusal.task, refusal.code) == (running, 409)
    assert refusal.reason == "the task is running; only a parked task waits for a person"
    await client.cancel(running)


async def test_filters_are_those_of_lists(world, client):
    mark = marked()
    task = await world.held(attributes=mark)
    created = (await client.status(task)).created_at
    meant = {
        "saga": [("plain", 1), ("talk", 0)],
        "agent": [("desk", 1), ("ann", 0)],
        "status": [(["running"], 1), (["parked"], 0)],
        "owner": [("", 1), ("ann", 0)],
        "created_after": [(created, 1)],
        "created_before": [(created, 0)],
    }
    for name, values in meant.items():
        for value, matched in values:
            asked = {"attributes": mark, name: value}
            assert (await client.batch("cancel", dry_run=True, **asked)).matched == matched, asked
    await client.cancel(task)


async def refusal(asked: Any) -> str:
    with pytest.raises((Refused, InvalidInput)) as caught:
        await asked
    return str(caught.value)


async def test_a_batch_on_everything_is_never_meant(client):
    assert await refusal(client.batch("cancel")) == (
        "filter: narrow it by a saga, an agent, an owner, statuses, attributes or a time; with "
        "none of these it means every task there is"
    )


async def test_what_does_not_fit_is_refused(client):
    assert "action: " in await refusal(client.batch("settle", saga="plain"))
    assert "filter.sagas: " in await refusal(client.batch("cancel", sagas="plain"))
    assert "limit: " in await refusal(client.batch("cancel", saga="plain", limit=201))
    assert await refusal(client.batch("cancel", saga="plain", cursor="x")) == (
        "cursor: not one that this API gave"
    )
    long = await refusal(client.batch("cancel", saga="plain", reason="x" * (REASON_MAX_CHARS + 1)))
    assert long == f"by, reason: at most 200 and {REASON_MAX_CHARS} characters are taken"


async def test_only_operators_may(client, making):
    submitter = Client(client.connection, token=await making.create("carl", "submit"))
    assert await refusal(submitter.batch("cancel", saga="plain")) == (
        "token 'carl' has role 'submit'; 'batch' needs 'operate'"
    )


async def test_what_is_not_answered_in_time_is_said_to_be_unknown(world, client, monkeypatch):
    monkeypatch.setattr("headway.coordinator.batching.WITHIN_S", 0.0)
    mark = marked()
    task = await world.held(attributes=mark)
    reply = await client.batch("cancel", attributes=mark)
    [refused] = reply.refused
    assert (refused.task, refused.code) == (task, 503)
    assert refused.reason == "nobody knows yet whether it was done; ask again"
    assert (await world.ended(task)).status == "compensated"


async def test_nothing_is_done_while_the_database_is_away(world, client, monkeypatch):
    def away(*_: Any) -> None:
        raise StoreUnavailable("PostgreSQL is away; nothing was done, ask again")

    mark = marked()
    task = await world.held(attributes=mark)
    hasty = Client(client.connection, timeout=0.5)
    with monkeypatch.context() as patch:
        patch.setattr(world.coordinator._batches._intake, "put", away)
        assert "PostgreSQL is away" in str(await failed(hasty.batch("cancel", attributes=mark)))
    assert (await client.batch("cancel", attributes=mark)).tasks == [task]


async def failed(asked: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the caller looks at it
        await asked
    return caught.value
