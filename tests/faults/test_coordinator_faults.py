"""Coordinators that die at the worst moment, race, freeze, or miss the answer to a commit."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from harness.audit import events_of_type
from harness.coordination import registered
from harness.eventually import eventually
from harness.shop import linear
from headway.agents.subjects import EVENTS_STREAM
from headway.coordinator.errors import StoreUnavailable
from headway.coordinator.housekeeping import Housekeeping
from headway.sagas import Saga

pytestmark = pytest.mark.timed

ACK_WAIT_S = 5.0  # as shipped
LOOKED_AFTER_S = 1.0  # age at which a dispatch may be looked after


SHORT = ("--ack-wait", "0.6")  # for where the shipped one is not the point


@pytest.mark.parametrize(
    ("moment", "arguments", "bound_s"),
    [
        pytest.param("publish", (), ACK_WAIT_S, id="between commit and publish, as shipped"),
        pytest.param("ack", SHORT, LOOKED_AFTER_S + 2, id="between publish and ack"),
        pytest.param("announcement", SHORT, 2.0, id="between the last commit and its news"),
    ],
)
async def test_a_coordinator_killed_at_its_worst_moment_is_taken_over(
    system, measured, moment, arguments, bound_s
):
    doomed = await system.coordinator("--die-at", moment, *arguments)
    await registered(system.client, linear())
    async with system.working():
        task = (await system.client.submit("linear", {"number": 1})).task
        assert await doomed.ended() == -9
        killed_at = time.monotonic()
        await system.coordinator(*arguments)
        await system.all_settled(1)
        measured(
            f"coordinator killed: {moment}, a fresh one, {' '.join(arguments) or 'as shipped'}",
            time.monotonic() - killed_at,
            bound_s,
        )
        # the unacked event comes again and must not change anything
        await eventually(lambda: no_events(system), 10)
        assert (await system.client.result(task, timeout=10)).status == "succeeded"
    assert system.downstream.effects(task) == {"done": 3}
    assert [call["step"] for call in system.downstream.calls(task)] == ["a", "b", "c"]


async def no_events(system):
    jetstream = system.client.connection.nc.jetstream()
    return (await jetstream.stream_info(EVENTS_STREAM)).state.messages == 0


@pytest.mark.parametrize("moment", ["publish", "ack"])
async def test_a_peer_goes_on_for_a_coordinator_killed_at_its_worst_moment(
    system, measured, moment, short_ack_wait
):
    """The peer holds nothing of what the dead one knew; the event comes to it again."""
    doomed = await system.coordinator("--die-at", moment, *SHORT)
    await registered(system.client, linear())
    async with system.working():
        task = (await system.client.submit("linear", {"number": 1})).task
        assert await doomed.ended() == -9
        killed_at = time.monotonic()
        async with system.coordinating():
            await system.all_settled(1)
            measured(
                f"coordinator killed: {moment}, a peer, {' '.join(SHORT)}",
                time.monotonic() - killed_at,
                LOOKED_AFTER_S + 1,
            )
            await eventually(lambda: no_events(system), 10)
            view = await system.client.status(task)
    assert view.status == "succeeded"
    assert len(system.downstream.calls(task)) == 3


@pytest.mark.parametrize("moment", ["publish", "ack", "announcement"])
async def test_a_peer_that_is_there_takes_over_within_a_second(system, measured, moment):
    """As shipped. Either of the two may be given an event, so tasks come until one of them meets
    its coordinator's death."""
    count = 0
    async with system.coordinating() as [peer], system.working():
        await registered(system.client, linear())
        doomed = await system.coordinator("--die-at", moment)
        await eventually(lambda: len(peer._vigil.watch._peers._seen) == 2, 10)
        dying = asyncio.create_task(died(doomed))
        while not dying.done():
            await system.client.submit_many("linear", ({"number": n} for n in range(20)))
            count += 20
            await asyncio.wait({dying}, timeout=1.0)
        killed_at = await dying
        statuses = await system.all_settled(count)
        bound_s = 1.2 if moment == "publish" else 1.0  # 0.8 s of it by SUSPECT_AGE_MS
        measured(f"coordinator killed: {moment}, a peer", time.monotonic() - killed_at, bound_s)
        await eventually(lambda: no_events(system), 10)
    assert statuses == {"succeeded": count}
    assert system.downstream.effects() == {"done": 3 * count}
    assert len(system.downstream.calls()) == 3 * count


async def died(doomed):
    """When it was killed by SIGKILL."""
    assert await doomed.ended() == -9
    return time.monotonic()


async def test_a_commit_whose_answer_was_lost_is_still_acted_upon(
    system, short_ack_wait, measured, monkeypatch
):
    """PostgreSQL committed and then went away: deciding again finds nothing to do, but the
    command was never sent."""
    async with system.coordinating() as [coordinator], system.working():
        await registered(system.client, linear())
        commit = coordinator._store.commit
        lost_at = []

        async def commit_and_lose_the_answer(changes):
            lost = await commit(changes)
            if not lost_at and any(change.task.steps["b"].outstanding for change in changes):
                lost_at.append(time.monotonic())
                raise StoreUnavailable("the connection broke before the answer came")
            return lost

        monkeypatch.setattr(coordinator._store, "commit", commit_and_lose_the_answer)
        task = (await system.client.submit("linear", {"number": 1})).task
        view = await system.client.result(task, timeout=40)
        measured("answer to a commit lost", time.monotonic() - lost_at[0], ACK_WAIT_S)
    assert view.status == "succeeded"
    assert system.downstream.effects(task) == {"done": 3}


async def test_one_coordinator_of_two_killed_under_load_delays_nobody_for_long(system, measured):
    count = 400
    doomed, peer = await system.coordinator(), await system.coordinator()  # as shipped
    await registered(system.client, linear())
    await system.coordinators(2)
    async with system.working():
        await system.client.submit_many("linear", ({"number": n} for n in range(count)))
        await doomed.kill()
        killed_at = time.monotonic()
        statuses = await system.all_settled(count)
        measured(
            "one coordinator of two killed under load, all 400 tasks ended",
            time.monotonic() - killed_at,
            3.0,
        )
        assert peer.running
    assert statuses == {"succeeded": count}
    assert system.downstream.effects() == {"done": 3 * count}


async def test_a_coordinator_frozen_under_load_wakes_up_to_a_world_that_went_on(system, measured):
    """A zombie: its commits are made on what it read before, and the version refuses them."""
    count = 200
    sleeper = await system.coordinator("--ack-wait", "0.6")
    await system.coordinator("--ack-wait", "0.6")
    await registered(system.client, linear())
    await system.coordinators(2)
    async with system.working(ack_wait_s=0.6, concurrency=16):
        slow = ({"number": n, "b": "sleep=0.02"} for n in range(count))
        await system.client.submit_many("linear", slow)
        sleeper.freeze()
        frozen_at = time.monotonic()
        await system.all_settled(count)
        measured(
            "one coordinator of two frozen under load, --ack-wait 0.6",
            time.monotonic() - frozen_at,
            10.0,
        )
        sleeper.thaw()
        await system.client.submit_many("linear", ({"number": n} for n in range(50)))
        statuses = await system.all_settled(count + 50)
        assert sleeper.running
    assert statuses == {"succeeded": count + 50}
    assert system.downstream.effects() == {"done": 3 * (count + 50)}


async def test_two_coordinators_racing_over_ten_thousand_tasks_end_them_all(system):
    """Two steps side by side, so that a task's two events come to both at the same time.

    No event is acked on a stale read: a task that lost one would be found by the sweep only, and
    have its command published again, or claimed.
    """
    count = 10_000
    await system.coordinator()
    await system.coordinator()
    side_by_side = Saga("race").step("a", "shop.a", read_only=True)
    await registered(system.client, side_by_side.step("b", "shop.b", read_only=True))
    await system.coordinators(2)
    async with system.working(concurrency=512):
        receipts = await system.client.publish_many("race", ({"number": n} for n in range(count)))
        assert len(set(receipts)) == count
        statuses = await system.all_settled(count, 60)
    assert statuses == {"succeeded": count}
    assert system.downstream.effects() == {"done": 2 * count}
    assert len(system.downstream.calls()) == 2 * count
    healed = await events_of_type(system.postgres_url, "AttemptRepublished", "AttemptClaimed")
    assert healed == []


async def test_a_coordinator_told_to_stop_ends_though_a_loop_misses_its_cancellation(
    system, measured, monkeypatch
):
    """As in Python 3.11, where a wait that ends in the moment of its cancellation swallows it."""

    async def deaf_once(_self):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    monkeypatch.setattr(Housekeeping, "tend_agents", deaf_once)
    async with system.coordinating():
        await registered(system.client, linear())
        told_at = time.monotonic()
    measured("coordinator told to stop", time.monotonic() - told_at, 1.0)
