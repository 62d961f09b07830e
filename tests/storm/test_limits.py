"""Limits at work: what waits, what goes on, and what happens to it meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.shop import ONCE, linear
from headway.agents import Agent, Conflict, Context, InvalidInput, NotFound, Reject
from headway.sagas import Saga, Timeouts
from storm.scenario import peak

pytestmark = pytest.mark.usefixtures("alert")


@pytest.fixture
def alert(monkeypatch):
    """Coordinators that look at what is declared ten times as often as those that are shipped."""
    monkeypatch.setattr("headway.coordinator.admission_limits.REFRESH_S", 0.1)
    monkeypatch.setattr("headway.coordinator.admission_loop.REFRESH_S", 0.1)


@asynccontextmanager
async def limited(system, *limits, coordinators=1, saga=None):
    """Coordinators that know these limits: (scope, name, options)."""
    async with system.coordinating(coordinators) as running:
        await registered(system.client, saga or linear(steps="a"))
        for scope, name, options in limits:
            await system.client.set_limit(scope, name, **options)
        await known(running, len(limits))
        yield running


async def known(coordinators, count):
    await eventually(
        lambda: all(len(c._admission.declared.limits.declared) == count for c in coordinators), 5
    )


async def submit(system, count, order=None, **options):
    inputs = [{"number": number, **(order or {})} for number in range(count)]
    return [each.task for each in await system.client.submit_many("linear", inputs, **options)]


def patient(name="shop"):
    """An agent whose handlers wait until they are told to go on; `at_work` are those that do."""
    agent = Agent(name)
    agent.go_on, agent.at_work, agent.most = asyncio.Event(), [], 0

    @agent.action("a")
    async def work(ctx: Context) -> None:
        agent.at_work.append(ctx.task)
        agent.most = max(agent.most, len(agent.at_work))
        try:
            await agent.go_on.wait()
        finally:
            agent.at_work.remove(ctx.task)

    @agent.compensation("undo-a")
    async def undo(ctx: Context) -> None:
        agent.at_work.append(ctx.task)
        agent.at_work.remove(ctx.task)

    return agent


async def rows(system):
    found = await system.fetch("SELECT state, count(*) FROM headway.admissions GROUP BY state")
    return {row["state"]: row["count"] for row in found}


async def no_rows(system):
    return not await rows(system)


async def test_attempts_begin_no_faster_than_declared_on_two_coordinators(system):
    rate = ("agent", "shop", {"rate": 40.0, "burst": 9})
    async with limited(system, rate, coordinators=2), system.working(), system.working():
        await submit(system, 100)
        await system.all_settled(100)
        moments = [call["at"] for call in system.downstream.calls()]
        assert peak(moments) <= 49
        assert 99 / 40 - 0.2 <= moments[-1] - moments[0] <= 1.3 * 100 / 40 + 0.5
        await eventually(lambda: no_rows(system), 3)


async def test_no_more_go_on_at_a_time_than_declared_and_each_that_ends_makes_room(system):
    agent = patient()
    limit = ("agent", "shop", {"concurrency": 3})
    async with limited(system, limit, coordinators=2), working(system.nats.url, agent):
        await submit(system, 9)
        await eventually(lambda: len(agent.at_work) == 3, 5)
        await eventually(lambda: six_wait(system), 5)
        agent.go_on.set()
        await system.all_settled(9)
    assert agent.most == 3


async def six_wait(system):
    return await rows(system) == {"waiting": 6, "begun": 3}


async def test_a_saga_at_its_limit_holds_back_no_other_saga(system):
    agent = patient()
    async with limited(system, ("saga", "linear", {"concurrency": 1})):
        await registered(system.client, linear("other", steps="a"))
        async with working(system.nats.url, agent):
            await submit(system, 20)
            await eventually(lambda: len(agent.at_work) == 1, 5)
            others = [await system.client.submit("other", {}) for _ in range(3)]
            await eventually(lambda: {each.task for each in others} <= set(agent.at_work), 5)
            assert len(agent.at_work) == 4
            agent.go_on.set()
            await system.all_settled(23)


async def test_each_value_of_a_key_is_limited_by_itself_and_holds_back_no_other(system):
    agent = patient()
    limits = [
        ("key", "shop:customer", {"concurrency": 1}),
        ("agent", "shop", {"concurrency": 50}),
    ]
    async with limited(system, *limits), working(system.nats.url, agent):
        alice = await submit(system, 100, attributes={"customer": "alice"})
        await eventually(lambda: len(agent.at_work) == 1, 5)
        bob = await submit(system, 2, attributes={"customer": "bob/s"})
        nobody = await submit(system, 3)
        await eventually(lambda: len(agent.at_work) == 5, 5)
        assert [len(set(agent.at_work) & set(group)) for group in (alice, bob, nobody)] == [1, 1, 3]
        agent.go_on.set()
        await system.all_settled(105)


async def test_the_urgent_go_first_and_children_are_as_urgent_as_their_parents(system):
    agent = patient()
    parent = Saga("parent").child("step", "linear")
    async with limited(system, ("agent", "shop", {"concurrency": 1})):
        await registered(system.client, parent)
        async with working(system.nats.url, agent):
            blocking = await submit(system, 1)
            await eventually(lambda: agent.at_work == blocking, 5)
            await submit(system, 5)
            urgent = await system.client.submit("linear", {}, priority=7)
            published = await system.client.publish("linear", {}, priority=8)
            child = await system.client.submit("parent", {}, priority=9)
            await eventually(lambda: waiting_by_priority(system, {4: 5, 7: 1, 8: 1, 9: 1}), 5)
            order = []
            agent.go_on.set()
            await system.all_settled(10)
            order = await began(system)
            parents = await system.fetch(
                "SELECT id FROM headway.tasks WHERE parent IS NOT NULL AND priority = 9"
            )
            assert order[1:4] == [parents[0]["id"], published, urgent.task]
            assert child.task not in order


async def waiting_by_priority(system, wanted):
    found = await system.fetch(
        "SELECT priority, count(*) FROM headway.admissions WHERE state = 'waiting' GROUP BY 1"
    )
    return {row["priority"]: row["count"] for row in found} == wanted


async def began(system):
    """The tasks in the order in which their action ended."""
    found = await system.fetch(
        "SELECT task_id FROM headway.task_events WHERE type = 'StepCompleted' AND"
        " data ->> 'step' = 'a' ORDER BY at, task_id"
    )
    return [row["task_id"] for row in found]


async def test_compensations_go_before_all_that_is_new(system):
    agent = patient()

    @agent.action("b")
    async def refuse(ctx: Context) -> None:
        raise Reject("as ordered", kind="Ordered")

    agent.compensation("undo-b")(refuse)
    two = linear("two", steps="ab")
    async with limited(system, ("agent", "shop", {"concurrency": 1})):
        await registered(system.client, two)
        async with working(system.nats.url, agent):
            failing = (await system.client.submit("two", {})).task
            await eventually(lambda: agent.at_work == [failing], 5)
            await submit(system, 10, priority=9)
            agent.go_on.set()
            await system.all_settled(11)
        ends = await system.fetch(
            "SELECT task_id, type FROM headway.task_events"
            " WHERE type IN ('TaskCompensated', 'TaskSucceeded') ORDER BY at"
        )
        [place] = [number for number, row in enumerate(ends) if row["type"] == "TaskCompensated"]
        # step b waits behind those of priority 9; its undoing does not
        assert place == 10
        last = await system.fetch(
            "SELECT count(*) FROM headway.admissions WHERE phase = 'compensation'"
        )
        assert last[0]["count"] == 0


async def test_a_task_that_is_cancelled_while_it_waits_ends_at_once_and_leaves_nothing(system):
    agent = patient()
    limit = ("agent", "shop", {"concurrency": 1})
    async with limited(system, limit), working(system.nats.url, agent):
        [busy] = await submit(system, 1)
        await eventually(lambda: agent.at_work == [busy], 5)
        [waiting] = await submit(system, 1)
        await eventually(lambda: waits(system, waiting), 5)
        await system.client.cancel(waiting, "not wanted")
        view = await system.client.result(waiting, timeout=5)
        assert view.status == "compensated"
        assert not await waits(system, waiting)
        agent.go_on.set()
        await system.all_settled(2)
        await eventually(lambda: no_rows(system), 5)


async def waits(system, task):
    view = await system.client.status(task)
    return "a slot of" in (view.steps[0].waiting_for or "")


async def test_a_waiting_task_says_what_for_and_how_many_are_before_it(system):
    agent = patient()
    limit = ("agent", "shop", {"rate": 50.0, "concurrency": 1})
    async with limited(system, limit), working(system.nats.url, agent):
        [busy] = await submit(system, 1)
        await eventually(lambda: agent.at_work == [busy], 5)
        await submit(system, 3, priority=5)
        [last] = await submit(system, 1)
        await eventually(lambda: waits(system, last), 5)
        [step] = (await system.client.status(last)).steps
        assert step.waiting_for == "a slot of agent shop: 50/s, 1 at a time, 3 before it"
        [view] = (await system.client.limits()).limits
        assert (view.rate, view.burst, view.concurrency) == (50.0, 11, 1)
        assert (view.waiting, view.running) == (4, 1)
        [listed] = (await system.client.agents()).agents
        assert (listed.waiting, listed.queued, listed.in_flight) == (4, 0, 1)
        agent.go_on.set()
        await system.all_settled(5)


async def test_time_in_the_line_counts_for_schedule_to_start(system):
    agent = patient()
    saga = Saga("linear").step(
        "a", "shop.a", read_only=True, timeouts=Timeouts(schedule_to_start=0.5), retry=ONCE
    )
    limit = ("agent", "shop", {"concurrency": 1})
    async with limited(system, limit, saga=saga), working(system.nats.url, agent):
        [busy] = await submit(system, 1)
        await eventually(lambda: agent.at_work == [busy], 5)
        [late] = await submit(system, 1)
        view = await system.client.result(late, timeout=10)
        assert view.status == "compensated"
        assert view.steps[0].error.type == "Timeout.schedule_to_start"
        agent.go_on.set()
        await system.all_settled(2)
        await eventually(lambda: no_rows(system), 5)


async def test_a_limit_that_is_raised_or_removed_lets_go_what_waits(system):
    agent = patient()
    limit = ("agent", "shop", {"concurrency": 1})
    async with limited(system, limit), working(system.nats.url, agent):
        await submit(system, 8)
        await eventually(lambda: len(agent.at_work) == 1, 5)
        await system.client.set_limit("agent", "shop", concurrency=3)
        await eventually(lambda: len(agent.at_work) == 3, 3)
        await system.client.remove_limit("agent", "shop")
        await eventually(lambda: len(agent.at_work) == 8, 3)
        agent.go_on.set()
        await system.all_settled(8)
        await eventually(lambda: no_rows(system), 5)


async def test_a_limited_agent_without_workers_holds_up_no_other_of_its_saga(system):
    agent = patient("there")
    saga = Saga("linear").step("a", "there.a", read_only=True)
    elsewhere = Saga("elsewhere").step("a", "absent.a", read_only=True)
    limits = [("saga", "linear", {"concurrency": 1}), ("saga", "elsewhere", {"concurrency": 1})]
    async with limited(system, *limits, saga=saga):
        await registered(system.client, elsewhere)
        absent = [(await system.client.submit("elsewhere", {})).task for _ in range(3)]
        async with working(system.nats.url, agent):
            await submit(system, 1)
            await eventually(lambda: len(agent.at_work) == 1, 5)
            assert await rows(system) == {"waiting": 3, "begun": 1}
            agent.go_on.set()
            async with working(system.nats.url, shut("absent")):
                await system.all_settled(4)
    assert len(absent) == 3


def shut(name):
    agent = Agent(name)

    @agent.action("a")
    async def work(ctx: Context) -> None:
        return None

    return agent


async def test_what_an_attempt_left_behind_is_found_by_comparing_with_the_state(
    system, monkeypatch
):
    monkeypatch.setattr("headway.coordinator.admission_loop.COMPARE_EVERY_S", 0.1)
    monkeypatch.setattr("headway.coordinator.admission_loop.COMPARED_AGE_MS", 0)
    async with limited(system, ("agent", "shop", {"concurrency": 1})), system.working():
        [done] = await submit(system, 1)
        await system.client.result(done, timeout=10)
        await eventually(lambda: no_rows(system), 5)
        await system.fetch(
            "INSERT INTO headway.admissions (task_id, step, phase, attempt, epoch, agent, subject,"
            " places, priority, again, state, since) VALUES ($1, 'a', 'action', 1, 0, 'shop', '',"
            " '{agent/shop}', 4, false, 'begun', now())",
            done,
        )
        [next_] = await submit(system, 1)
        assert (await system.client.result(next_, timeout=10)).status == "succeeded"


async def test_commands_that_were_queued_before_the_limit_are_held_to_it(system):
    agent = patient()
    async with system.coordinating() as running:
        await registered(system.client, linear(steps="a"))
        await submit(system, 6)
        await system.client.set_limit("agent", "shop", concurrency=2)
        await known(running, 1)
        async with working(system.nats.url, agent):
            await eventually(lambda: len(agent.at_work) == 2, 5)
            await asyncio.sleep(0.6)
            assert len(agent.at_work) == 2
            agent.go_on.set()
            await system.all_settled(6)
    assert agent.most == 2


async def test_a_coordinator_killed_between_admitting_and_publishing_loses_no_command(system):
    limit = ("agent", "shop", {"rate": 100.0, "concurrency": 5})
    async with limited(system, limit, saga=linear(steps="ab")):
        pass
    async with system.working():
        doomed = await system.coordinator("--die-at", "publish")
        tasks = await submit(system, 3)
        await doomed.ended(20)
        await eventually(lambda: one_is_admitted(system), 1)
        async with system.coordinating():
            for task in tasks:
                assert (await system.client.result(task, timeout=20)).status == "succeeded"
            await eventually(lambda: no_rows(system), 10)
        assert [system.downstream.effects(task)["done"] for task in tasks] == [2, 2, 2]


async def one_is_admitted(system):
    return (await rows(system)).get("admitted", 0) >= 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            {"scope": "key", "name": "payments", "rate": 1.0},
            "a key is written AGENT:ATTRIBUTE, such as payments:customer, not 'payments'; "
            "the attribute's name has 1 to 64 of A-Z a-z 0-9 _ . and -",
        ),
        (
            {"scope": "agent", "name": "a.b", "rate": 1.0},
            "'a.b' cannot be the name of an agent or a saga",
        ),
        (
            {"scope": "saga", "name": "a:b", "rate": 1.0},
            "'a:b' cannot be the name of an agent or a saga",
        ),
        ({"scope": "agent", "name": "a"}, "a limit needs a rate, a concurrency, or both"),
        (
            {"scope": "agent", "name": "a", "concurrency": 1, "burst": 3},
            "a burst belongs to a rate",
        ),
        (
            {"scope": "agent", "name": "a", "rate": 40.0, "burst": 8},
            "a burst of 8 cannot be kept to: attempts may begin 0.2 s after their turn, so at 40/s "
            "it is at least 9",
        ),
    ],
)
async def test_a_limit_that_makes_no_sense_is_refused(system, arguments, reason):
    async with system.coordinating():
        await eventually(system.client.health, 15)
        with pytest.raises(InvalidInput) as refused:
            await system.client.set_limit(**arguments)
        assert str(refused.value) == reason


async def test_a_limit_that_is_not_there_cannot_be_removed(system):
    async with system.coordinating():
        await eventually(system.client.health, 15)
        with pytest.raises(NotFound) as refused:
            await system.client.remove_limit("agent", "shop")
        assert str(refused.value) == "there is no limit on agent 'shop'"


async def test_what_nothing_limits_leaves_no_trace_in_the_line(system):
    async with limited(system, ("agent", "other", {"concurrency": 1})), system.working():
        began_at = time.monotonic()
        await submit(system, 20, priority=9)
        await system.all_settled(20)
        assert time.monotonic() - began_at < 5
        assert await rows(system) == {}


__all__ = ["Conflict"]


async def test_however_many_keys_are_full_none_that_has_room_waits_behind_them(system, monkeypatch):
    for name, few in (("CANDIDATES_MAX", 2), ("ROUNDS_MAX", 2), ("NEW_MS", 0)):
        monkeypatch.setattr(f"headway.coordinator.admission_loop.{name}", few)
    agent = patient()
    limit = ("key", "shop:customer", {"concurrency": 1})
    async with limited(system, limit), working(system.nats.url, agent):
        for number in range(12):
            await submit(system, 4, attributes={"customer": f"c{number}"})
        await eventually(lambda: len(agent.at_work) == 12, 4)
        assert (await rows(system))["waiting"] == 36
        agent.go_on.set()
        await system.all_settled(48)


@pytest.mark.timed
async def test_however_many_slow_keys_are_used_up_none_that_has_room_waits_behind_them(
    system, monkeypatch
):
    for name, few in (("CANDIDATES_MAX", 2), ("ROUNDS_MAX", 2), ("NEW_MS", 0)):
        monkeypatch.setattr(f"headway.coordinator.admission_loop.{name}", few)
    agent = patient()
    agent.go_on.set()
    limit = ("key", "shop:customer", {"rate": 1 / 60, "burst": 1})
    async with limited(system, limit), working(system.nats.url, agent):
        for number in range(12):
            await submit(system, 4, attributes={"customer": f"c{number}"})

        async def each_had_its_turn():
            return (await rows(system)) == {"waiting": 36}

        await eventually(each_had_its_turn, 4)
        await system.client.remove_limit("key", "shop:customer")
        await system.all_settled(48)


async def test_what_waits_for_its_turn_is_not_at_work_yet(system, monkeypatch):
    monkeypatch.setattr("headway.agents.repeats.OLD_COMMAND_S", 0.0)  # so that all are claimed
    monkeypatch.setattr("headway.sagas.deadlines.CLOSE_GRACE_MS", 100)
    agent = patient()
    agent.go_on.set()
    at_most = Timeouts(start_to_close=1.2)
    saga = Saga("linear").step("a", "shop.a", read_only=True, timeouts=at_most, retry=ONCE)
    async with system.coordinating() as running:
        await registered(system.client, saga)
        await submit(system, 9)
        await system.client.set_limit("agent", "shop", rate=3.0, burst=1)
        await known(running, 1)
        async with working(system.nats.url, agent):
            assert await system.all_settled(9) == {"succeeded": 9}


@pytest.mark.parametrize("removed", [False, True])
async def test_a_rate_that_was_set_too_low_holds_nobody_once_another_is_set(system, removed):
    agent = patient()
    agent.go_on.set()
    async with system.coordinating(2) as running:
        await registered(system.client, linear(steps="a"))
        await submit(system, 5)  # in the stream before there is a limit: with the worker, they wait
        await system.client.set_limit("agent", "shop", rate=1 / 3600, burst=1)
        await known(running, 1)
        async with working(system.nats.url, agent):
            await eventually(lambda: begun(system, 5), 5)
            await submit(system, 5)
            if removed:
                await system.client.remove_limit("agent", "shop")
            await system.client.set_limit("agent", "shop", rate=20.0)
            await system.all_settled(10, 6)


async def begun(system, count):
    return (await rows(system)).get("begun", 0) >= count - 1
