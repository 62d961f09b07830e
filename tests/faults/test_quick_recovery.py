"""Who is gone is followed within a second; who is only late, frozen or cut off for a moment is not.

All as shipped. `downstream.calls` has each beginning of a handler, by operation.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.proxy import Proxy
from harness.shop import linear
from headway.agents import Agent, Context, tool
from headway.agents.pull import IN_PROGRESS
from headway.agents.subjects import COMMANDS_STREAM, command_subject
from headway.sagas import Saga

pytestmark = pytest.mark.timed

ACK_WAIT_S = 5.0
ONE = ("--concurrency", "1")


@asynccontextmanager
async def proxy_before(system, rng: random.Random):
    proxy = Proxy(urlsplit(system.nats.url).port, rng)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


async def one_task(system, agent, order):
    """`agent`, the only one with a free slot, is in the middle of a task's step b."""
    task = (await system.client.submit("linear", {"b": order})).task
    await system.called(task, 2)
    return task


async def sign_of_life(system, task) -> None:
    """Wait until the worker that has this task's step b says that it is at it."""
    subject = command_subject("shop", "b", str(task), "b")
    stream = system.client.connection.nc.jetstream()
    sequence = str((await stream.get_last_msg(COMMANDS_STREAM, subject)).seq)
    heard = asyncio.Event()

    def on_ack(subject, _reply, _headers, body) -> None:
        if body == IN_PROGRESS and subject.split(".")[-4] == sequence:
            heard.set()

    wire = system.client.connection.wire
    sid = await wire.subscribe(f"$JS.ACK.{COMMANDS_STREAM}.shop.>", on_ack)
    await asyncio.wait_for(heard.wait(), ACK_WAIT_S)
    await wire.unsubscribe(sid)


def begun(system, task) -> Counter[str]:
    return Counter(call["step"] for call in system.downstream.calls(task))


async def test_a_frozen_a_blocked_and_a_cut_off_worker_keep_what_they_have_and_run_it_once(
    system, rng, measured, tmp_path
):
    """While one beside them is killed: as two do not answer, its command is left to `ack_wait`, or
    to the moment in which all answer again. An idle worker is there all the time."""
    async with proxy_before(system, rng) as proxy, system.coordinating(2):
        await registered(system.client, linear())
        frozen = await system.agent(*ONE)
        go_on = tmp_path / "go-on"
        until = f"until={go_on}"
        tasks = {"frozen": await one_task(system, frozen, until)}
        cut = await system.agent(*ONE, nats_url=proxy.url(system.nats.url))
        tasks["cut"] = await one_task(system, cut, until)
        killed = await system.agent(*ONE)
        tasks["killed"] = await one_task(system, killed, until)
        blocked = await system.agent(*ONE)
        await sign_of_life(system, tasks["frozen"])
        frozen.freeze()
        tasks["blocked"] = await one_task(system, blocked, "block=3")
        async with system.working():
            await killed.kill()
            killed_at = time.monotonic()
            proxy.refusing = True
            proxy.cut()
            await asyncio.sleep(0.3)  # the very thing under test: so long it is away
            proxy.heal()
            await asyncio.sleep(2.7 - (time.monotonic() - killed_at))
            frozen.thaw()
            await eventually(lambda: begun(system, tasks["killed"])["b"] == 2, 10)
            measured(
                "agent killed while another one is frozen",
                time.monotonic() - killed_at,
                ACK_WAIT_S,
            )
            go_on.touch()
            await system.all_settled(4)
    for fault in ("frozen", "cut", "blocked"):
        assert begun(system, tasks[fault]) == {"a": 1, "b": 1, "c": 1}, fault
    assert begun(system, tasks["killed"]) == {"a": 1, "b": 2, "c": 1}
    assert system.downstream.effects() == {"done": 12}


@tool(recovery="natural")
async def add(number: int) -> int:
    return number + 1


async def test_who_asked_a_coordinator_that_was_killed_asks_its_peer_at_once(system, measured):
    """Clients wait for results, and handlers write their journals, each at either of two."""
    agent, enough, steps, release = Agent("clerk"), asyncio.Event(), [], asyncio.Event()

    @agent.action("count", tools=[add])
    async def count(ctx: Context) -> int:
        number = 0
        while not enough.is_set():
            number = await ctx.call(add, number, key=f"add-{number}")
            steps.append((ctx.task, time.monotonic()))
        return number

    @agent.action("wait")
    async def wait(ctx: Context) -> None:
        await release.wait()

    counting = Saga("count").step("count", "clerk.count", read_only=True)
    waiting = Saga("wait").step("wait", "clerk.wait", read_only=True)
    peer, doomed = await system.coordinator(), await system.coordinator()
    for saga in (counting, waiting):
        await registered(system.client, saga)
    await system.coordinators(2)
    async with working(system.nats.url, agent):
        client = system.client
        counts = [(await client.submit("count", {})).task for _ in range(6)]
        waits = [(await client.submit("wait", {})).task for _ in range(12)]
        results = [asyncio.create_task(client.result(task, timeout=30)) for task in waits]
        await eventually(lambda: len(steps) > 200)
        await doomed.kill()
        killed_at = time.monotonic()
        release.set()
        assert {view.status for view in await asyncio.gather(*results)} == {"succeeded"}
        measured("Client.result, coordinator killed", time.monotonic() - killed_at, 1.0)
        await asyncio.sleep(1.0 - (time.monotonic() - killed_at))  # so long it is looked at
        enough.set()
        await system.all_settled(len(counts) + len(waits))
        times = [[at for each, at in steps if each == task] for task in counts]
        longest = max(later - at for each in times for at, later in itertools.pairwise(each))
        measured("journal.append, coordinator killed", longest, 1.0)
    assert peer.running
