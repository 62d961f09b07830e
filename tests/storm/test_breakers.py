"""Breakers at work: an agent that keeps failing, one that a person pauses."""

from __future__ import annotations

import asyncio

import pytest
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.shop import linear
from headway.agents import Agent, Context, InvalidInput, Reject
from headway.coordinator import breaker as rules
from headway.sagas import Retry, Saga

STUBBORN = Retry(initial_interval=0.05, maximum_interval=0.2, maximum_attempts=0)


class Moody:
    """An agent that fails for as long as it is told to."""

    def __init__(self, failure=RuntimeError):
        self.agent, self.failing, self.calls, self.failure = Agent("shop"), True, 0, failure

        @self.agent.action("a")
        async def work(ctx: Context) -> None:
            self.calls += 1
            if self.failing:
                raise self.failure("as ordered")


@pytest.fixture
def brisk(monkeypatch):
    """Breakers that open and probe sooner than those that are shipped."""
    monkeypatch.setattr(rules, "FAILURES_MIN", 10)
    monkeypatch.setattr(rules, "PAUSE_FIRST_MS", 300)
    monkeypatch.setattr(rules, "PAUSE_MAX_MS", 600)


def saga(retry=STUBBORN):
    return Saga("linear").step("a", "shop.a", read_only=True, retry=retry)


async def submit(system, count):
    inputs = [{"number": number} for number in range(count)]
    return [each.task for each in await system.client.submit_many("linear", inputs)]


async def state(system):
    [agent] = (await system.client.agents()).agents
    return agent.breaker.state if agent.breaker else "closed"


async def is_in(system, *states):
    return await state(system) in states


@pytest.mark.parametrize("limit", [None, 200.0])
async def test_an_agent_that_keeps_failing_is_paused_probed_and_let_go_when_it_succeeds(
    system, brisk, limit
):
    moody = Moody()
    async with system.coordinating(2):
        await registered(system.client, saga())
        if limit:
            await system.client.set_limit("agent", "shop", rate=limit)
        async with working(system.nats.url, moody.agent):
            tasks = await submit(system, 40)
            await eventually(lambda: is_in(system, "open"), 10)
            await eventually(lambda: says(system, tasks[0], "given none since"), 10)
            await eventually(lambda: trips(system, 2), 10)
            calls = moody.calls
            moody.failing = False
            await system.all_settled(40)
            assert moody.calls <= calls + 40 + 10
            await eventually(lambda: is_in(system, "closed"), 10)


async def says(system, task, text):
    [step] = (await system.client.status(task)).steps
    return text in (step.waiting_for or "")


async def trips(system, count):
    rows = await system.fetch("SELECT trips FROM headway.breakers WHERE agent = 'shop'")
    return bool(rows) and rows[0]["trips"] >= count


async def test_while_it_is_probed_an_agent_gets_one_command_at_a_time(system, brisk):
    moody = Moody()
    async with system.coordinating():
        await registered(system.client, saga())
        async with working(system.nats.url, moody.agent):
            await submit(system, 30)
            await eventually(lambda: trips(system, 3), 20)
            before = moody.calls
            await eventually(lambda: trips(system, 7), 20)
            # one at a time; a few that fail at once come before the pause does
            assert moody.calls - before <= 6 * 4
            moody.failing = False
            await system.all_settled(30)


async def test_rejections_open_no_breaker(system, brisk):
    moody = Moody(Reject)
    async with system.coordinating():
        await registered(system.client, saga())
        async with working(system.nats.url, moody.agent):
            await submit(system, 60)
            await system.all_settled(60)
            assert await state(system) == "closed"


async def test_an_agent_that_rejects_when_it_is_probed_is_let_go(system, brisk):
    moody = Moody()
    async with system.coordinating():
        await registered(system.client, saga())
        async with working(system.nats.url, moody.agent):
            await submit(system, 40)
            await eventually(lambda: is_in(system, "open"), 10)
            moody.failure = Reject
            await system.all_settled(40)
            await eventually(lambda: is_in(system, "closed"), 5)


@pytest.mark.parametrize("limit", [None, 200.0])
async def test_what_an_agent_has_in_hand_stands_in_no_probes_way(system, brisk, limit):
    moody, go_on, at_work = Moody(), asyncio.Event(), []

    @moody.agent.action("long")
    async def long(ctx: Context) -> None:
        at_work.append(ctx.task)
        await go_on.wait()

    async with system.coordinating():
        await registered(system.client, saga())
        await registered(system.client, Saga("long").step("a", "shop.long", read_only=True))
        if limit:
            await system.client.set_limit("agent", "shop", rate=limit)
        async with working(system.nats.url, moody.agent):
            for _ in range(3):
                await system.client.submit("long", {})
            await eventually(lambda: len(at_work) == 3, 5)
            await submit(system, 20)
            await eventually(lambda: trips(system, 2), 10)
            moody.failing = False
            await system.all_settled(20)
            await eventually(lambda: is_in(system, "closed"), 5)
            go_on.set()
            await system.all_settled(23)


async def test_a_few_failures_open_no_breaker(system):
    moody = Moody()
    async with system.coordinating():
        await registered(system.client, saga(Retry(maximum_attempts=1)))
        async with working(system.nats.url, moody.agent):
            await submit(system, rules.FAILURES_MIN - 1)
            await system.all_settled(rules.FAILURES_MIN - 1)
            assert await state(system) == "closed"


async def test_a_person_pauses_an_agent_and_resumes_it(system):
    async with system.coordinating(2), system.working():
        await registered(system.client, linear(steps="a"))
        view = await system.client.pause_agent("shop", "maintenance", by="ada")
        assert (view.state, view.by, view.reason) == ("paused", "ada", "maintenance")
        again = await system.client.pause_agent("shop", "maintenance", by="ada")
        assert again.since == view.since
        [task] = await submit(system, 1)
        await eventually(lambda: says(system, task, "paused by ada since"), 5)
        await eventually(lambda: says(system, task, ": maintenance)"), 5)
        assert system.downstream.calls() == []
        view = await system.client.resume_agent("shop", by="ada")
        assert view.state == "closed"
        assert (await system.client.result(task, timeout=10)).status == "succeeded"
        assert await state(system) == "closed"


async def test_a_pause_outlives_coordinators_and_a_stream_that_was_made_anew(system):
    async with system.coordinating(), system.working():
        await registered(system.client, linear(steps="a"))
        await system.client.pause_agent("shop")
    async with system.coordinating(), system.working():
        await eventually(system.client.health, 15)
        [task] = await submit(system, 1)
        await system.nats.wipe_store()
        await eventually(lambda: is_paused(system), 15)
        await eventually(lambda: says(system, task, "paused by a person since"), 15)
        assert system.downstream.calls() == []
        await system.client.resume_agent("shop")
        assert (await system.client.result(task, timeout=45)).status == "succeeded"


async def is_paused(system):
    jetstream = system.client.connection.nc.jetstream()
    try:
        return (await jetstream.consumer_info("HW_COMMANDS", "shop")).paused
    except Exception:
        return False


async def test_what_cannot_be_an_agent_cannot_be_paused(system):
    async with system.coordinating():
        await eventually(system.client.health, 15)
        with pytest.raises(InvalidInput) as refused:
            await system.client.pause_agent("a.b")
        assert str(refused.value) == "'a.b' cannot be the name of an agent"
