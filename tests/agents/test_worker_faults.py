"""The worker when things break: redelivery, zombies, restarts, a wiped store, SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.eventually import eventually
from harness.services import RunningNats
from headway.agents.agent import Agent
from headway.agents.context import Context
from headway.agents.messages import HANDED_BACK, CommandData, EventData, encode
from headway.agents.subjects import COMMANDS_STREAM, EVENTS_STREAM, command_subject
from headway.agents.views import ClaimReply

StandIn = Any
Work = Callable[..., Any]
ACK_WAIT_S = 0.6  # as in conftest


class Gate:
    """A handler that notes its runs and waits until it is opened."""

    def __init__(self, agent: Agent) -> None:
        self.runs: list[Context] = []
        self.opened = asyncio.Event()

        @agent.action("charge")
        async def charge(ctx: Context) -> int:
            self.runs.append(ctx)
            await self.opened.wait()
            return len(self.runs)


@pytest.fixture
def agent() -> Agent:
    return Agent("payments")


@pytest.fixture
def gate(agent: Agent) -> Gate:
    return Gate(agent)


async def test_a_handler_longer_than_ack_wait_stays_with_its_worker(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    await work(agent)
    await work(agent)
    command = await standin.command("payments", "charge")
    await eventually(lambda: gate.runs)
    await asyncio.sleep(3 * ACK_WAIT_S)  # the very thing under test: time passes
    gate.opened.set()
    await standin.event(command, "completed")
    await standin.all_acked()
    assert len(gate.runs) == 1
    assert standin.claims == []


async def test_of_two_workers_with_one_command_the_claim_decides(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    """Both were given it; the coordinator grants one, and the other drops it without a word."""
    granted: list[str] = []

    def first_only(claim: Any) -> ClaimReply:
        granted.append(claim.worker)
        return ClaimReply(granted=len(granted) == 1, epoch=1, reason="somebody else has it")

    standin.decide = first_only
    gate.opened.set()
    one, two = await work(agent), await work(agent)
    command = await standin.command("payments", "charge", epoch=1)
    await standin.event(command, "completed")
    await standin.all_acked()
    await standin.send(command_subject("payments", "charge", command.task, "pay"), encode(command))
    await eventually(lambda: len(granted) == 2)
    await standin.all_acked()
    assert len(gate.runs) == 1
    assert len(standin.of(command)) == 1
    assert set(granted) <= {one.worker.name, two.worker.name}


async def test_the_same_worker_goes_on_when_its_own_command_comes_again(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    """As after a loop that hung for longer than ack_wait: no second run beside the first."""
    running = await work(agent)
    keep_all, running.worker._keep_all = running.worker._keep_all, lambda: None
    command = await standin.command("payments", "charge")
    [attempt] = await eventually(lambda: list(running.worker._attempts))
    first = attempt.settlement._delivery
    await eventually(lambda: attempt.settlement._delivery is not first)
    running.worker._keep_all = keep_all
    gate.opened.set()
    await standin.event(command, "completed")
    await standin.all_acked()
    assert len(gate.runs) == 1
    assert standin.claims == []


async def test_a_claim_is_asked_again_until_somebody_answers(
    standin: StandIn, work: Work, agent: Agent, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.claims.CLAIM_TIMEOUT_S", 0.1)
    gate.opened.set()
    standin.decide = lambda claim: None
    await work(agent)
    command = await standin.command("payments", "charge", epoch=2)
    await eventually(lambda: len(standin.claims) >= 4)
    assert gate.runs == []
    standin.decide = lambda claim: ClaimReply(granted=True, epoch=5)
    assert (await standin.event(command, "completed")).epoch == 5


async def test_a_claim_that_is_not_granted_drops_the_command(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    standin.decide = lambda claim: ClaimReply(granted=False, reason="already answered")
    await work(agent)
    command = await standin.command("payments", "charge", epoch=1)
    await standin.all_acked()
    assert gate.runs == []
    assert standin.of(command) == []


async def test_a_claim_that_a_later_delivery_has_won_leaves_the_command_to_that_one(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    """An ack would take it from the other: nobody would get it if that one died."""
    standin.decide = lambda claim: ClaimReply(granted=False, reason="later", elsewhere=True)
    await work(agent)
    command = await standin.command("payments", "charge", epoch=1)
    await eventually(lambda: len(standin.claims) >= 1)
    await eventually(lambda: len(standin.claims) >= 2)  # it comes again, once nobody keeps it
    assert gate.runs == []
    assert standin.of(command) == []
    assert await standin.queued() == 1


async def test_an_old_command_is_claimed_even_when_it_comes_first(
    standin: StandIn, work: Work, agent: Agent, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.repeats.OLD_COMMAND_S", 0.05)
    gate.opened.set()
    command = await standin.command("payments", "charge")
    await asyncio.sleep(0.1)  # the very thing under test: it gets old
    await work(agent)
    assert (await standin.event(command, "completed")).epoch == 1
    assert len(standin.claims) == 1


async def test_a_command_that_its_coordinator_held_up_is_claimed_even_when_it_comes_first(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    """Meanwhile it may have been published again, and answered."""
    standin.decide = lambda claim: ClaimReply(granted=False, reason="already answered")
    await work(agent)
    await standin.command("payments", "charge", late=True)
    await standin.all_acked()
    assert gate.runs == []
    assert len(standin.claims) == 1


async def test_a_server_restart_in_mid_handler_stores_the_event_once_and_acks(
    standin: StandIn, work: Work, agent: Agent, gate: Gate, nats_server: RunningNats
) -> None:
    running = await work(agent)
    command = await standin.command("payments", "charge")
    await eventually(lambda: gate.runs)
    await nats_server.kill()
    await nats_server.start()
    await eventually(lambda: running.connection.nc.is_connected)
    gate.opened.set()
    event = await standin.event(command, "completed")
    await standin.all_acked()
    assert event.data == EventData(result=1)
    assert len(gate.runs) == 1


async def test_a_handler_that_ends_while_the_server_is_away_has_its_event_stored_later(
    standin: StandIn, work: Work, agent: Agent, gate: Gate, nats_server: RunningNats
) -> None:
    running = await work(agent)
    command = await standin.command("payments", "charge")
    await eventually(lambda: gate.runs)
    await nats_server.kill()
    await eventually(lambda: not running.connection.nc.is_connected)
    gate.opened.set()
    await eventually(lambda: [a.settlement.reported for a in running.worker._attempts] == [True])
    # Delivered again behind its event, if the server was away for long, it is answered already.
    standin.decide = lambda _claim: ClaimReply(granted=False, reason="it is answered")
    await nats_server.start()
    await standin.event(command, "completed")
    await standin.all_acked()
    assert len(gate.runs) == 1


async def test_a_wiped_store_in_mid_handler_does_not_lose_the_event(
    standin: StandIn, work: Work, agent: Agent, gate: Gate, nats_server: RunningNats
) -> None:
    running = await work(agent)
    command = await standin.command("payments", "charge")
    await eventually(lambda: gate.runs)
    await nats_server.wipe_store()
    await eventually(lambda: running.connection.nc.is_connected)
    gate.opened.set()
    [attempt] = await eventually(lambda: list(running.worker._attempts))
    await eventually(lambda: attempt.settlement._again_s > 0)  # there is no stream for it yet
    await eventually(lambda: standin.connection.nc.is_connected)
    await standin.declare()
    event = await standin.event(command, "completed")
    assert event.data == EventData(result=1)
    other = await standin.command("payments", "charge")
    await standin.event(other, "completed")
    await standin.all_acked()
    assert len(gate.runs) == 2


async def test_a_missing_event_stream_keeps_the_command_until_it_is_there(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    gate.opened.set()
    js = standin.connection.nc.jetstream()
    stream = (await js.stream_info(EVENTS_STREAM)).config
    consumer = (await js.consumer_info(EVENTS_STREAM, "coordinator")).config
    await js.delete_stream(EVENTS_STREAM)
    running = await work(agent)
    command = await standin.command("payments", "charge")
    [attempt] = await eventually(lambda: list(running.worker._attempts))
    await eventually(lambda: attempt.settlement._again_s > 2 * ACK_WAIT_S / 3)
    assert await standin.queued() == 1
    await js.add_stream(stream)
    await js.add_consumer(EVENTS_STREAM, consumer)
    await standin.event(command, "completed")
    await standin.all_acked()
    assert len(gate.runs) == 1


async def test_a_worker_that_comes_before_its_consumer_finds_it(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    gate.opened.set()
    js = standin.connection.nc.jetstream()
    consumer = (await js.consumer_info(COMMANDS_STREAM, "payments")).config
    await js.delete_consumer(COMMANDS_STREAM, "payments")
    await work(agent)
    await eventually(lambda: standin.presences)
    command = await standin.command("payments", "charge")
    await js.add_consumer(COMMANDS_STREAM, consumer)
    await standin.event(command, "completed")


async def test_told_to_stop_it_finishes_what_fits_into_the_grace_time(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    running = await work(agent, grace_s=10)
    command = await standin.command("payments", "charge")
    await eventually(lambda: gate.runs)
    running.stop.set()
    await eventually(lambda: standin.presences[-1].stopping)
    later = await standin.command("payments", "charge")
    gate.opened.set()
    await running.task
    await standin.event(command, "completed")
    assert standin.of(later) == []
    assert await standin.queued() == 1


async def test_told_to_stop_it_hands_back_the_rest_at_once(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    cancelled: list[str] = []

    @agent.action("clean")
    async def clean(ctx: Context) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.append(ctx.step)

    leaving = await work(agent, grace_s=0.05)
    commands = [await standin.command("payments", name) for name in ("charge", "clean")]
    await eventually(lambda: leaving.worker._look().busy == 2)
    heir_agent = Agent("payments")
    heirs: list[int] = []

    @heir_agent.action("charge")
    @heir_agent.action("clean")
    async def quick(ctx: Context) -> None:
        heirs.append(ctx.epoch)

    await work(heir_agent)
    started = time.monotonic()
    await leaving.end()
    for command in commands:
        await standin.event(command, "completed")
    assert time.monotonic() - started < ACK_WAIT_S
    assert heirs == [1, 1]
    assert cancelled == ["pay"]


async def test_an_idle_worker_stops_at_once(
    standin: StandIn, work: Work, agent: Agent, gate: Gate
) -> None:
    running = await work(agent, grace_s=30)
    await eventually(lambda: standin.presences)
    started = time.monotonic()
    await running.end()
    assert time.monotonic() - started < 1


SHOP = """
    import asyncio, pathlib, time
    from headway.agents.agent import Agent

    payments = Agent("payments")

    @payments.action("charge")
    async def charge(ctx, order):
        pathlib.Path(order["mark"]).touch()
        await asyncio.sleep(order["seconds"])
        return "done"

    @payments.action("hang")
    def hang(ctx, order):
        pathlib.Path(order["mark"]).touch()
        time.sleep(600)
"""


async def start_process(url: str, folder: Path, grace_s: float) -> asyncio.subprocess.Process:
    (folder / "shop.py").write_text(textwrap.dedent(SHOP))
    code = (
        "from headway.agents.runner import load, run; import sys; "
        f"run([load('shop:payments')], sys.argv[1], grace_s={grace_s})"
    )
    return await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", code, url, cwd=folder, env={**os.environ}
    )


async def test_sigterm_in_mid_handler_lets_it_finish(
    standin: StandIn, nats_url: str, tmp_path: Path
) -> None:
    process = await start_process(nats_url, tmp_path, grace_s=20)
    mark = tmp_path / "mark"
    command = await standin.command(
        "payments", "charge", data=_data({"mark": str(mark), "seconds": 0.5})
    )
    await eventually(mark.exists)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == 0
    await standin.event(command, "completed")
    await standin.all_acked()


async def test_sigterm_hands_back_a_thread_that_does_not_end_and_exits(
    standin: StandIn, nats_url: str, tmp_path: Path
) -> None:
    process = await start_process(nats_url, tmp_path, grace_s=0.1)
    mark = tmp_path / "mark"
    command = await standin.command("payments", "hang", data=_data({"mark": str(mark)}))
    await eventually(mark.exists)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 5) == 0
    assert [event.type for event in standin.of(command)] == [HANDED_BACK]
    assert await standin.queued() == 1


async def test_after_sigkill_in_mid_handler_another_claims_the_command_within_ack_wait(
    standin: StandIn, nats_url: str, tmp_path: Path, work: Work, agent: Agent, gate: Gate
) -> None:
    process = await start_process(nats_url, tmp_path, grace_s=1)
    mark = tmp_path / "mark"
    command = await standin.command(
        "payments", "charge", data=_data({"mark": str(mark), "seconds": 60})
    )
    await eventually(mark.exists)
    process.kill()
    await process.wait()
    gate.opened.set()
    heir = await work(agent)
    event = await standin.event(command, "completed")
    assert (event.epoch, gate.runs[0].epoch) == (1, 1)
    [claim] = standin.claims
    assert (str(claim.task), claim.step, claim.phase) == (command.task, "pay", "action")
    assert (claim.attempt, claim.epoch, claim.delivery) == (1, 0, 2)
    assert claim.worker == heir.worker.name
    await standin.all_acked()


async def test_a_zombie_that_wakes_up_after_the_takeover_tells_its_old_epoch(
    standin: StandIn, nats_url: str, tmp_path: Path, work: Work, agent: Agent, gate: Gate
) -> None:
    """Its late event is stored, and its epoch lets the coordinator judge it."""
    zombie = await start_process(nats_url, tmp_path, grace_s=1)
    mark = tmp_path / "mark"
    command = await standin.command(
        "payments", "charge", data=_data({"mark": str(mark), "seconds": 0.3})
    )
    await eventually(mark.exists)
    zombie.send_signal(signal.SIGSTOP)
    gate.opened.set()
    await work(agent)
    await standin.event(command, "completed")
    zombie.send_signal(signal.SIGCONT)
    await eventually(lambda: len(standin.of(command)) == 2)
    assert [each.epoch for each in standin.of(command)] == [1, 0]
    await standin.all_acked()
    zombie.send_signal(signal.SIGTERM)
    await zombie.wait()


def _data(order: dict[str, Any]) -> Any:
    return CommandData(input=order)
