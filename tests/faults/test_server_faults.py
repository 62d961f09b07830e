"""Servers that are killed, restarted, emptied or away for long, under load."""

from __future__ import annotations

import asyncio
import re
import time

import orjson
import pytest
from harness.coordination import client_of, registered
from harness.eventually import eventually
from harness.shop import linear
from headway.agents import Unavailable, connect
from headway.agents.api import call
from headway.agents.identity import new_task_id
from headway.agents.subjects import api_subject

pytestmark = pytest.mark.timed

COUNT = 400


def orders(count: int = COUNT):
    """Every fifth is rejected at its last step, and undone."""
    return ({"number": n, **({"c": "reject"} if n % 5 == 0 else {})} for n in range(count))


def expected(count: int = COUNT):
    return {"succeeded": count - count // 5, "compensated": count // 5}


def check_effects(system, count: int = COUNT) -> None:
    """Three of each task that succeeded; two undone and one never made of each rejected one.

    What was never made is barred where the rejection did not count for certain.
    """
    effects = system.downstream.effects()
    assert effects.pop("barred", 0) <= count // 5
    assert effects == {"done": 3 * (count - count // 5), "undone": 2 * (count // 5)}


async def submitted_under_way(system, count: int = COUNT, at_least: int = 20):
    """Submit tasks, and return when some of them have ended and most have not."""
    submitting = asyncio.create_task(system.client.submit_many("linear", orders(count)))
    await eventually(lambda: len(system.downstream.calls()) >= at_least, 20)
    return submitting


async def goes_on(system, calls: int) -> bool:
    return len(system.downstream.calls()) > calls


def since(moment: float) -> float:
    return time.monotonic() - moment


async def test_jetstreams_store_deleted_while_500_tasks_are_open(system, measured):
    """Commands and events are gone with it, acked or not; PostgreSQL says what is outstanding."""
    count = 500
    async with system.coordinating():
        await registered(system.client, linear())
        receipts = await system.client.submit_many("linear", orders(count))
        assert len(receipts) == count
        async with system.working(concurrency=32):
            await eventually(lambda: len(system.downstream.calls()) >= 50, 10)
            assert await system.settled() < count // 5
            await system.nats.wipe_store()
            wiped_at = time.monotonic()
            calls = len(system.downstream.calls())
            await eventually(lambda: goes_on(system, calls + 64), 30)
            measured("JetStream's store deleted", time.monotonic() - wiped_at, 5.0)
            statuses = await system.all_settled(count)
            measured("... and all 500 open tasks ended", time.monotonic() - wiped_at, 10.0)
    assert statuses == expected(count)
    check_effects(system, count)


async def test_the_store_deleted_again_and_again_loses_no_task(system, rng):
    count = 200
    async with system.coordinating(2), system.working(concurrency=16):
        await registered(system.client, linear())
        slow = ({"number": n, "b": "sleep=0.05"} for n in range(count))
        submitting = asyncio.create_task(system.client.submit_many("linear", slow))
        for _ in range(2):
            await asyncio.sleep(rng.uniform(0.1, 0.4))  # the moment is what is random here
            await system.nats.wipe_store()
        await submitting
        statuses = await system.all_settled(count, 40)
    assert statuses == {"succeeded": count}
    assert system.downstream.effects() == {"done": 3 * count}


async def test_nats_killed_and_restarted_under_load(system, measured, rng):
    """What the server had acked but not written is lost with it, and its streams look the same.

    Few slots, so that commands wait in the stream while the server is killed.
    """
    each, kills = 150, 3
    async with system.coordinating(2), system.working(concurrency=8):
        await registered(system.client, linear())
        for number in range(1, kills + 1):
            slow = ({"number": n, "a": "sleep=0.02"} for n in range(each))
            submitting = asyncio.create_task(system.client.submit_many("linear", slow))
            await asyncio.sleep(rng.uniform(0.1, 0.3))  # the moment is what is random here
            await system.nats.kill()
            await system.nats.start()
            back_at, calls = time.monotonic(), len(system.downstream.calls())
            await eventually(lambda: goes_on(system, calls + 8), 30)  # noqa: B023
            measured(f"nats-server killed, {number}, from its return", since(back_at), 1.0)
            receipts = await submitting
            assert [r for r in receipts if isinstance(r, Exception)] == []
            await system.all_settled(number * each, 70)
            measured("... and all open tasks ended", since(back_at), 8.0)
    assert system.downstream.effects() == {"done": 3 * each * kills}


async def test_nats_restarted_in_order_under_load(system, measured):
    count = 200
    async with system.coordinating(), system.working(concurrency=8):
        await registered(system.client, linear())
        slow = ({"number": n, "b": "sleep=0.02"} for n in range(count))
        await system.client.submit_many("linear", slow)
        await system.nats.restart()
        started_at = time.monotonic()
        calls = len(system.downstream.calls())
        await eventually(lambda: goes_on(system, calls + 16), 30)
        measured("nats-server restarted under load", time.monotonic() - started_at, 1.0)
        statuses = await system.all_settled(count, 70)
    assert statuses == {"succeeded": count}
    assert system.downstream.effects() == {"done": 3 * count}


async def test_postgresql_killed_and_restarted_under_load(own_system, postgres_server, measured):
    system = own_system
    async with system.coordinating(2), system.working():
        await registered(system.client, linear())
        submitting = await submitted_under_way(system)
        await postgres_server.kill()
        await postgres_server.start()
        back_at, calls = time.monotonic(), len(system.downstream.calls())
        await eventually(lambda: goes_on(system, calls + 8), 30)
        measured("PostgreSQL killed under load, from its return", since(back_at), 1.0)
        receipts = await submitting
        assert [r for r in receipts if isinstance(r, Exception)] == []
        statuses = await system.all_settled(COUNT, 70)
        measured("... and all 400 open tasks ended", since(back_at), 15.0)
    assert statuses == expected()
    check_effects(system)


async def test_postgresql_away_for_longer_than_ack_wait(
    own_system, postgres_server, short_ack_wait, measured
):
    """Nothing is acked, nothing is lost, no coordinator ends, and health says what is wrong."""
    system = own_system
    async with system.coordinating(2), system.working(ack_wait_s=short_ack_wait):
        await registered(system.client, linear())
        assert (await system.client.health()).status == "ok"
        submitting = await submitted_under_way(system)
        await postgres_server.stop()
        with pytest.raises(Unavailable, match=r"(?i)connect|StoreUnavailable|OSError"):
            await call(system.client.connection, api_subject("health"), b"{}", 5.0)
        async with client_of(system.nats.url) as other:
            published = await other.publish("linear", {"number": COUNT})
        await asyncio.sleep(4 * short_ack_wait)  # the very thing under test: time passes
        await postgres_server.start()
        back_at, calls = time.monotonic(), len(system.downstream.calls())
        await eventually(lambda: goes_on(system, calls + 8), 30)
        measured("PostgreSQL away for long, from its return", since(back_at), 1.0)
        receipts = await submitting
        assert [r for r in receipts if isinstance(r, Exception)] == []
        assert (await system.client.result(published, timeout=30)).status == "succeeded"
        statuses = await system.all_settled(COUNT + 1, 70)
        assert (await system.client.health()).status == "ok"
    assert statuses["compensated"] == COUNT // 5
    assert statuses["succeeded"] == COUNT - COUNT // 5 + 1


async def test_requests_while_postgresql_is_away_are_answered_at_once_and_do_not_pile_up(
    own_system, postgres_server
):
    system, count = own_system, 300
    async with system.coordinating() as [coordinator]:
        await registered(system.client, linear("one", "a"))
        await postgres_server.stop()

        def submit(timeout_s):
            request = orjson.dumps({"saga": "one", "task": new_task_id()})
            return call(system.client.connection, api_subject("submit"), request, timeout_s)

        with pytest.raises(Unavailable):
            await submit(0.5)  # by which it is noticed
        asked_at = time.monotonic()
        answers = await asyncio.gather(*(submit(5) for _ in range(count)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {Unavailable}
        assert re.search("PostgreSQL is away|Connect call failed", str(answers[0]))
        assert time.monotonic() - asked_at < 2
        assert len(coordinator._intake) < count
        await postgres_server.start()
        async with system.working():
            receipt = await system.client.submit("one", {})
            assert (await system.client.result(receipt.task, timeout=20)).status == "succeeded"
            await system.all_settled(1)


async def test_a_coordinator_process_outlives_both_servers_and_starts_before_them(
    own_system, postgres_server, measured
):
    system = own_system
    await postgres_server.stop()
    await system.nats.kill()
    coordinator = await system.coordinator()
    await system.nats.start()
    await postgres_server.start()
    await registered(system.client, linear())
    await asyncio.gather(postgres_server.kill(), system.nats.kill())
    killed_at = time.monotonic()
    await asyncio.gather(postgres_server.start(), system.nats.start())
    async with system.working():
        task = (await system.client.submit("linear", {"number": 1})).task
        assert (await system.client.result(task, timeout=20)).status == "succeeded"
    measured("both servers killed", time.monotonic() - killed_at, 5.0)
    assert coordinator.running


async def test_a_coordinator_starts_though_nats_falls_over_again_and_again(system, rng):
    coordinator = await system.coordinator()
    for _ in range(4):
        await asyncio.sleep(rng.uniform(0.0, 0.5))  # the moment is what is random here
        await system.nats.kill()
        await system.nats.start()
    await registered(system.client, linear())
    async with system.working():
        task = (await system.client.submit("linear", {"number": 1})).task
        assert (await system.client.result(task, timeout=20)).status == "succeeded"
    assert coordinator.running


async def test_an_agents_consumer_that_was_deleted_is_made_again(system, measured):
    async with system.coordinating(), system.working():
        await registered(system.client, linear())
        connection = await connect(system.nats.url, name="vandal")
        for stream, consumer in (("HW_COMMANDS", "shop"), ("HW_EVENTS", "coordinator")):
            await connection.nc.jetstream().delete_consumer(stream, consumer)
        deleted_at = time.monotonic()
        task = (await system.client.submit("linear", {"number": 1})).task
        assert (await system.client.result(task, timeout=60)).status == "succeeded"
        measured("a consumer deleted by hand", time.monotonic() - deleted_at, 5.0)
        await connection.close()
