"""Agents that are killed, frozen, slow, told to stop, racing, or late; each task ends once."""

from __future__ import annotations

import asyncio
import time

import pytest
from harness.audit import events_of_type
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.shop import ONCE, linear
from headway.agents import EMPTY, Agent, Context
from headway.agents.messages import COMPLETED, Event, EventData, encode
from headway.agents.subjects import event_subject
from headway.sagas import Retry, Saga, Timeouts

pytestmark = pytest.mark.timed

SHORT = ("--ack-wait", "0.6")


async def submit(system, order, saga="linear"):
    return (await system.client.submit(saga, {"number": 1, **order})).task


async def ended(system, task, timeout=30):
    return await system.client.result(task, timeout=timeout)


def steps_called(system, task):
    return [(call["step"], call["phase"]) for call in system.downstream.calls(task)]


async def test_an_agent_killed_in_a_handler_is_replaced_within_a_second(system, measured):
    async with system.coordinating():
        await registered(system.client, linear())
        doomed = await system.agent()
        task = await submit(system, {"b": "sleep=1"})
        await system.called(task, 2)
        await doomed.kill()
        killed_at = time.monotonic()
        async with system.working():
            await system.called(task, 3)
            measured("agent killed in a handler", time.monotonic() - killed_at, 1.0)
            view = await ended(system, task)
    assert view.status == "succeeded"
    assert system.downstream.effects(task) == {"done": 3}
    calls = [call for call in system.downstream.calls(task) if call["step"] == "b"]
    assert len({call["operation"] for call in calls}) == 1
    assert [(call["attempt"], call["epoch"]) for call in calls] == [(1, 0), (1, 2)]


async def test_deploys_are_not_counted_as_workers_that_died_of_a_command(system):
    async with system.coordinating():
        await registered(system.client, linear())
        task = await submit(system, {"a": "sleep=1.5"})
        for calls in range(1, 6):
            async with system.working(grace_s=0.0):
                await system.called(task, calls)
        async with system.working():
            view = await ended(system, task)
    assert view.status == "succeeded"
    assert len(await events_of_type(system.postgres_url, "AttemptHandedBack")) == 5
    assert system.downstream.effects(task) == {"done": 3}


async def test_an_agent_told_to_stop_hands_back_within_a_second(system, short_ack_wait, measured):
    async with system.coordinating():
        await registered(system.client, linear())
        leaving = await system.agent(*SHORT, "--grace", "0.1")
        task = await submit(system, {"b": "sleep=0.7"})
        await system.called(task, 2)
        async with system.working(ack_wait_s=short_ack_wait):
            leaving.terminate()
            told_at = time.monotonic()
            await system.called(task, 3)
            measured("agent told to stop, work handed back", time.monotonic() - told_at, 1.0)
            assert await leaving.ended() == 0
            measured("agent told to stop, process gone", time.monotonic() - told_at, 1.0)
            assert (await ended(system, task)).status == "succeeded"
    assert system.downstream.effects(task) == {"done": 3}


async def test_a_zombie_that_wakes_up_in_mid_handler_harms_nothing(
    system, short_ack_wait, measured
):
    """Frozen before its effect, overtaken, thawed: it acts again under the same operation id, and
    its late answer changes nothing."""
    async with system.coordinating():
        await registered(system.client, linear())
        zombie = await system.agent(*SHORT)
        task = await submit(system, {"b": "sleep=0.4"})
        await system.called(task, 2)
        zombie.freeze()
        frozen_at = time.monotonic()
        async with system.working(ack_wait_s=short_ack_wait):
            await system.called(task, 3)
            measured(
                f"agent frozen in a handler, ack_wait {short_ack_wait:g} s",
                time.monotonic() - frozen_at,
                2 * short_ack_wait,  # the zombie may be given it once more
            )
            view = await ended(system, task)
            assert view.status == "succeeded"
            version = view.version
            stream = system.client.connection.nc.jetstream()
            before = (await stream.stream_info("HW_EVENTS")).state.last_seq
            zombie.thaw()
            await eventually(lambda: one_more_event(stream, before), 10)
            await eventually(lambda: no_events(stream), 10)
            other = await submit(system, {})
            assert (await ended(system, other)).status == "succeeded"
    assert (await system.fetch("SELECT version FROM headway.tasks WHERE id = $1", task))[0][
        "version"
    ] == version
    assert system.downstream.effects(task) == {"done": 3}
    assert len(await events_of_type(system.postgres_url, "TaskSucceeded")) == 2


async def one_more_event(jetstream, before):
    return (await jetstream.stream_info("HW_EVENTS")).state.last_seq > before


async def no_events(jetstream):
    return (await jetstream.stream_info("HW_EVENTS")).state.messages == 0


async def test_a_zombie_that_would_fail_cannot_fail_what_another_took_over(system, short_ack_wait):
    async with system.coordinating():
        await registered(system.client, linear(retry=ONCE))
        zombie = await system.agent(*SHORT)
        task = await submit(system, {"b": "sleep=0.3 fail"})
        await system.called(task, 2)
        zombie.freeze()
        agent, release = Agent("shop"), asyncio.Event()

        @agent.action("b")
        @agent.action("c")
        async def patient(ctx: Context) -> None:
            await release.wait()

        async with working(system.nats.url, agent, ack_wait_s=short_ack_wait) as [worker]:
            await eventually(lambda: worker._attempts, 10)
            await eventually(lambda: claimed(system), 10)
            stream = system.client.connection.nc.jetstream()
            before = (await stream.stream_info("HW_EVENTS")).state.last_seq
            zombie.thaw()
            await eventually(lambda: one_more_event(stream, before), 10)
            await eventually(lambda: no_events(stream), 10)
            await zombie.kill()
            assert (await system.client.status(task)).status == "running"
            release.set()
            assert (await ended(system, task)).status == "succeeded"
    assert await events_of_type(system.postgres_url, "AttemptFailed") == []


async def claimed(system):
    return await events_of_type(system.postgres_url, "AttemptClaimed")


async def test_an_agent_that_kills_its_process_each_time_is_parked_and_can_be_undone(
    system, short_ack_wait, measured
):
    """Four processes die of it; then a person must look, and has all of it undone."""
    async with system.coordinating():
        await registered(system.client, linear(retry=ONCE))
        task = await submit(system, {"b": "die"})
        started_at = time.monotonic()
        watching = asyncio.create_task(ended(system, task, 60))
        deaths = 0
        while not watching.done():
            agent = await system.agent(*SHORT)
            dying = asyncio.create_task(agent.ended(60))
            await asyncio.wait({dying, watching}, return_when=asyncio.FIRST_COMPLETED)
            deaths += dying.done()
            if not dying.done():
                await agent.kill()
                await dying
        view = watching.result()
        measured(
            f"agent that kills its process each time, {deaths} deaths",
            time.monotonic() - started_at,
            12.0,
        )
        assert view.status == "parked"
        assert view.reason == (
            "step 'b': the command was taken over 3 times without an answer; "
            "a person must look at its agent"
        )
        assert deaths == 4
        await system.client.cancel(task, "it kills its agent")
        async with system.working(ack_wait_s=short_ack_wait):
            assert (await ended(system, task, 60)).status == "compensated"
    assert {("b", "compensation"), ("a", "compensation")} <= set(steps_called(system, task))
    assert system.downstream.effects(task) == {"undone": 1, "barred": 1}


async def test_a_handler_longer_than_ack_wait_runs_once(system, short_ack_wait):
    async with (
        system.coordinating(),
        system.working(ack_wait_s=short_ack_wait),
        system.working(ack_wait_s=short_ack_wait),
    ):
        await registered(system.client, linear())
        task = await submit(system, {"a": f"sleep={3 * short_ack_wait}"})
        assert (await ended(system, task)).status == "succeeded"
    assert len(system.downstream.calls(task)) == 3
    assert await claimed(system) == []


async def test_workers_racing_for_the_same_commands_run_each_once(system, rng):
    """Four instances on connections of their own, few slots each, many tasks."""
    count = 150
    async with (
        system.coordinating(),
        system.working(concurrency=3),
        system.working(concurrency=3),
        system.working(concurrency=3),
        system.working(concurrency=3),
    ):
        await registered(system.client, linear())
        orders = ({"number": n, "b": f"sleep={rng.uniform(0, 0.01):.4f}"} for n in range(count))
        await system.client.submit_many("linear", orders)
        statuses = await system.all_settled(count)
    assert statuses == {"succeeded": count}
    assert len(system.downstream.calls()) == 3 * count


async def test_of_two_workers_at_one_command_the_first_answer_ends_it(system, short_ack_wait):
    """The first gives no sign of life, so the second is granted the command too."""
    async with (
        system.coordinating(),
        system.working(ack_wait_s=60, concurrency=1) as [silent],
    ):
        await registered(system.client, linear(retry=ONCE))
        task = await submit(system, {"a": f"sleep={3 * short_ack_wait}"})
        await system.called(task)
        async with system.working(ack_wait_s=short_ack_wait):
            view = await ended(system, task)
            await eventually(lambda: not silent._attempts)
    assert view.status == "succeeded"
    assert [call["epoch"] for call in system.downstream.calls(task)][:2] == [0, 1]
    assert system.downstream.effects(task) == {"done": 3}


async def test_a_cancelled_task_tells_its_running_handler_and_is_undone(system, measured):
    agent, seen = Agent("patient"), []

    @agent.action("wait")
    async def wait(ctx: Context) -> str:
        seen.append("begun")
        await ctx.wait_cancelled()
        seen.append(ctx.cancelled)
        return "half done"

    @agent.compensation("undo")
    async def undo(ctx: Context, order, result: str | None) -> None:
        seen.append(result)

    saga = Saga("patient").step("wait", "patient.wait", compensate="patient.undo")
    async with system.coordinating(), working(system.nats.url, agent):
        await registered(system.client, saga)
        task = await submit(system, {}, "patient")
        await eventually(lambda: seen)
        await system.client.cancel(task, reason="no longer wanted")
        cancelled_at = time.monotonic()
        view = await ended(system, task)
        measured("task cancelled while its agent runs", time.monotonic() - cancelled_at, 1.0)
    assert view.status == "compensated"
    assert seen == ["begun", True, "half done"]


async def test_schedule_to_start_runs_out_for_a_busy_agent_and_its_late_run_is_undone(
    system, measured
):
    """One slot, taken by another task: the second is given up unknown, and never runs."""
    limits = Timeouts(schedule_to_start=0.5)
    async with system.coordinating(), system.working(concurrency=1):
        await registered(system.client, linear())
        await registered(system.client, linear("hasty", "a", retry=ONCE, timeouts=limits))
        busy = await submit(system, {"a": "sleep=1.5"})
        await system.called(busy)
        hasty = await submit(system, {}, "hasty")
        submitted_at = time.monotonic()

        async def turned():
            return (await system.client.status(hasty)).status == "compensating"

        await eventually(turned, 10)
        measured("schedule_to_start of 0.5 s", time.monotonic() - submitted_at, 1.0)
        assert (await ended(system, hasty)).status == "compensated"
        assert (await ended(system, busy)).status == "succeeded"
    assert steps_called(system, hasty) == [("a", "compensation")]


async def late_success(system, task, step, attempt=1):
    event = Event(
        id=f"{task}/{step}/late",
        task=str(task),
        step=step,
        phase="action",
        attempt=attempt,
        epoch=0,
        type=COMPLETED,
        source="/tests",
        data=EventData(result={"late": True}),
    )
    jetstream = system.client.connection.nc.jetstream()
    await jetstream.publish(event_subject("shop", str(task)), encode(event))


async def kinds(system, task):
    return [entry.type for entry in await system.client.history(task)]


async def test_a_success_after_a_timeout_wins_while_a_retry_is_due(system):
    slow = Retry(initial_interval=30, maximum_attempts=2)
    saga = linear("slow", "ab", retry=slow, timeouts=Timeouts(start_to_close=0.3))
    async with system.coordinating(), system.working():
        await registered(system.client, saga)
        task = await submit(system, {"a": "sleep=5"}, "slow")

        async def timed_out():
            return "AttemptTimedOut" in await kinds(system, task)

        await eventually(timed_out, 10)
        await late_success(system, task, "a")
        view = await ended(system, task)
    assert view.status == "succeeded"
    assert view.results["a"] == {"late": True}


@pytest.mark.parametrize(
    ("empty", "incident"), [(True, "took effect"), (False, "")], ids=["empty", "undone"]
)
async def test_a_success_after_the_compensation_is_recorded_and_is_an_incident_if_it_found_nothing(
    system, empty, incident
):
    agent = Agent("shop")
    runs: list[str] = []

    @agent.action("a")
    async def act(ctx: Context) -> None:
        await asyncio.Event().wait()

    @agent.compensation("undo-a")
    async def undo(ctx: Context):
        runs.append("undo")
        return EMPTY if empty else None

    saga = linear("late", "a", retry=ONCE, timeouts=Timeouts(start_to_close=0.2))
    async with system.coordinating(), working(system.nats.url, agent):
        await registered(system.client, saga)
        task = await submit(system, {}, "late")
        assert (await ended(system, task)).status == "compensated"
        for _ in range(2):
            await late_success(system, task, "a")

        async def recorded():
            return "LateSuccess" in await kinds(system, task)

        await eventually(recorded, 10)
        jetstream = system.client.connection.nc.jetstream()
        await eventually(lambda: no_events(jetstream), 10)
        view = await system.client.status(task)
        assert (await kinds(system, task)).count("LateSuccess") == 1
    assert view.status == "compensated"
    assert incident in view.incident
    assert bool(view.incident) == bool(incident)
    assert runs == ["undo"]
