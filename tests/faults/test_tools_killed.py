"""An agent that is killed around each request to its journal, and within its tools: each time it
ends the same, with each effect once; and one that is frozen there, and overtaken."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import pytest
from harness.coordination import registered
from harness.errands import DONE, EFFECTS, Traces, errand_saga
from harness.eventually import eventually
from headway.agents.trial import CONFIRM_AFTER_S
from headway.coordinator import streams

pytestmark = pytest.mark.timed

ACK_WAIT_S = 0.3
LANES = 4


@pytest.fixture
def traces(tmp_path):
    traces = Traces(tmp_path / "traces.sqlite")
    yield traces
    traces.close()


@pytest.fixture(autouse=True)
def _short_ack_wait(monkeypatch):
    monkeypatch.setattr(streams, "ACK_WAIT_S", ACK_WAIT_S)


async def agent(system, tmp_path, name):
    return await system.actors.start(
        "errands_process",
        *("--name", name, "--traces", str(tmp_path / "traces.sqlite")),
        *("--ack-wait", str(ACK_WAIT_S)),
        HEADWAY_NATS_URL=system.nats.url,
    )


async def errand(system, name, **order):
    """Run one errand; its task, once it is settled."""
    receipt = await system.client.submit(name, order)
    view = await system.client.result(receipt.task, timeout=30)
    return receipt.task, view


async def check(system, traces, name, **order):
    task, view = await errand(system, name, **order)
    where = f"{order}: {view.status} {view.reason}"
    assert view.status == "succeeded", where
    assert view.results == {"run": DONE}, where
    assert traces.effects(task) == EFFECTS, where
    return traces.marks(task)


async def test_killed_at_every_place_of_its_journal_an_agent_ends_the_same(
    system, tmp_path, traces
):
    async with system.coordinating():
        lanes = [f"lane-{number}" for number in range(LANES)]
        for name in lanes:
            await agent(system, tmp_path, name)
            await registered(system.client, errand_saga(name))
        places = [place for place in await check(system, traces, lanes[0]) if place != "die"]
        assert len([place for place in places if place.startswith("before ")]) >= 10
        left = iter(places)

        async def work_off(name):
            for place in left:  # shared: each lane takes the next
                marks = await check(system, traces, name, at=place, what="die")
                assert "die" in marks, f"nobody died {place}"

        await asyncio.gather(*(work_off(name) for name in lanes))
    sys.stdout.write(f"killed at {len(places)} places: {', '.join(places)}\n")


async def test_frozen_and_overtaken_an_agent_leaves_no_trace_when_it_wakes(
    system, tmp_path, traces
):
    """After an intent's commit, after a result's, and after an effect whose result is not known."""
    places = ["after 1", "after 5", "after send"]
    async with system.coordinating():
        tasks = {}
        for number, place in enumerate(places):
            name = f"lane-{number}"
            await agent(system, tmp_path, name)
            await registered(system.client, errand_saga(name))
            receipt = await system.client.submit(name, {"at": place, "what": "freeze"})
            tasks[receipt.task] = name
        for task, name in tasks.items():
            await eventually(
                lambda task=task: "freeze" in traces.marks(task), what="a frozen agent"
            )
            await agent(system, tmp_path, name)
        frozen_at = time.monotonic()
        versions = {}
        for task in tasks:
            view = await system.client.result(task, timeout=30)
            assert (view.status, view.results) == ("succeeded", {"run": DONE})
            versions[task] = view.version
        await asyncio.sleep(frozen_at + CONFIRM_AFTER_S - time.monotonic())  # it was frozen so long
        for task in tasks:
            os.kill(traces.marks(task)["freeze"], signal.SIGCONT)
        for number, task in enumerate(tasks):
            log = tmp_path / f"errands_process-{number}.log"
            await eventually(lambda log=log: "superseded, dropped" in log.read_text())
            assert traces.effects(task) == EFFECTS
            assert (await system.client.status(task)).version == versions[task]
