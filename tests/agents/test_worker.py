"""The worker against a real server: outcomes of handlers, limits, payloads, junk."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
import pytest
from harness.eventually import eventually
from headway.agents import attempt, payloads
from headway.agents.agent import Agent
from headway.agents.attempt import Attempt
from headway.agents.binding import EMPTY
from headway.agents.context import Context
from headway.agents.errors import Reject, Retry
from headway.agents.messages import Command, CommandData, Event, EventData, FailureData
from headway.agents.subjects import COMMANDS_STREAM, command_subject, stop_subject
from headway.agents.views import ClaimReply
from nats.js.api import AckPolicy, ConsumerConfig
from pydantic import BaseModel

StandIn = Any
Work = Callable[..., Any]


class Order(BaseModel):
    total: int


def failure(event: Event) -> FailureData:
    assert event.data is not None
    assert event.data.error is not None
    return event.data.error


@pytest.fixture
def agent() -> Agent:
    return Agent("payments")


async def test_a_result_becomes_an_event_and_the_command_is_acked(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    seen: list[Context] = []

    @agent.action("charge")
    async def charge(ctx: Context, order: Order) -> dict[str, int]:
        seen.append(ctx)
        return {"charged": order.total}

    running = await work(agent)
    data = CommandData(input={"total": 7}, results={"check": {"ok": True}})
    command = await standin.command("payments", "charge", data=data, starttoclosems=60_000)
    event = await standin.event(command, "completed")
    await standin.all_acked()
    assert event.data == EventData(result={"charged": 7})
    assert (event.epoch, event.source) == (0, f"/headway/agents/payments/{running.worker.name}")
    assert standin.event_subjects[0].endswith(f".payments.{command.task}")
    [ctx] = seen
    assert (ctx.task, ctx.saga, ctx.step) == (UUID(command.task), "order", "pay")
    assert (ctx.phase, ctx.attempt, ctx.epoch) == ("action", 1, 0)
    assert (ctx.input, ctx.results) == ({"total": 7}, {"check": {"ok": True}})
    assert ctx.deadline is not None
    assert standin.claims == []


async def test_a_compensation_gets_input_result_and_doubt(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    seen: list[Any] = []

    @agent.compensation("refund")
    async def refund(ctx: Context, order: Order, receipt: dict[str, int] | None) -> Any:
        seen.append((order.total, receipt, ctx.outcome_unknown))
        return EMPTY if receipt is None else None

    await work(agent)
    known = CommandData(input={"total": 7}, result={"charged": 7})
    unknown = CommandData(input={"total": 7}, outcome_unknown=True)
    first = await standin.command("payments", "refund", phase="compensation", data=known)
    second = await standin.command("payments", "refund", phase="compensation", data=unknown)
    assert (await standin.event(first, "completed")).data == EventData()
    assert (await standin.event(second, "completed")).data == EventData(empty=True)
    assert sorted(seen, key=str) == [(7, None, True), (7, {"charged": 7}, False)]


class Panic(BaseException):
    """As some libraries raise them that are written in Rust."""


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (Reject("no funds"), FailureData("Reject", "no funds", False, True)),
        (Reject("no", kind="CardDeclined"), FailureData("CardDeclined", "no", False, True)),
        (Retry(after=1.5), FailureData("Retry", "try again later", True, False, 1500)),
        (Retry("busy"), FailureData("Retry", "busy", True, False, -1)),
        (ValueError("bad\0\ud800" + "x" * 9000), FailureData("ValueError", "", True, False)),
        (SystemExit(3), FailureData("SystemExit", "3", True, False)),
        (Panic("!"), FailureData("Panic", "!", True, False)),
        (asyncio.CancelledError(), FailureData("CancelledError", "", True, False)),
        (StopIteration(), FailureData("RuntimeError", "", True, False)),
    ],
)
@pytest.mark.parametrize("sync", [False, True])
async def test_what_a_handler_raises_says_how_the_attempt_failed(
    standin: StandIn,
    work: Work,
    agent: Agent,
    raised: BaseException,
    expected: FailureData,
    sync: bool,
) -> None:
    if sync:

        @agent.action("charge")
        def charge(ctx: Context) -> None:
            raise raised
    else:

        @agent.action("charge")
        async def charge_async(ctx: Context) -> None:
            raise raised

    await work(agent)
    command = await standin.command("payments", "charge")
    error = failure(await standin.event(command, "failed"))
    assert (error.type, error.retryable, error.noeffect, error.retryafterms) == (
        expected.type,
        expected.retryable,
        expected.noeffect,
        expected.retryafterms,
    )
    assert len(error.message) <= 2_000
    assert expected.message in error.message
    await standin.all_acked()


async def test_bad_input_is_a_final_failure_that_names_the_field(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context, order: Order) -> None: ...

    await work(agent)
    command = await standin.command("payments", "charge", data=CommandData(input={"total": "x"}))
    error = failure(await standin.event(command, "failed"))
    assert (error.type, error.retryable, error.noeffect) == ("InvalidInput", False, True)
    assert error.message.startswith("input: total: ")


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        (object(), "InvalidResult"),
        (EMPTY, "InvalidResult"),
        ("x" * 1_048_576, "ResultTooLarge"),
    ],
)
async def test_a_result_that_cannot_be_kept_is_a_final_failure_with_effect(
    standin: StandIn, work: Work, agent: Agent, returned: Any, kind: str
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> Any:
        return returned

    await work(agent)
    command = await standin.command("payments", "charge")
    error = failure(await standin.event(command, "failed"))
    assert (error.type, error.retryable, error.noeffect) == (kind, False, False)


async def test_a_large_result_and_large_data_travel_by_reference(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("echo")
    async def echo(ctx: Context, text: str) -> str:
        return text

    await work(agent)
    text = "y" * 700_000
    command = await standin.command("payments", "echo", data=CommandData(input=text))
    assert command.dataref
    event = await standin.event(command, "completed")
    assert event.data is None
    body = await payloads.get(standin.connection.wire, event.dataref, event.datadigest)
    assert orjson.loads(body)["result"] == text
    await standin.all_acked()


@pytest.mark.parametrize("reference", ["gone.0", "not a name", "*"])
async def test_lost_data_is_a_failure_that_may_be_tried_again(
    standin: StandIn, work: Work, agent: Agent, reference: str
) -> None:
    @agent.action("echo")
    async def echo(ctx: Context, text: str) -> str:
        return text

    await work(agent)
    command = await standin.command(
        "payments", "echo", data=None, dataref=reference, datadigest="0" * 64
    )
    error = failure(await standin.event(command, "failed"))
    assert (error.type, error.retryable, error.noeffect) == ("PayloadLost", True, True)


@pytest.mark.parametrize(("name", "phase"), [("other", "action"), ("charge", "compensation")])
async def test_an_action_that_is_not_here_may_be_known_elsewhere(
    standin: StandIn, work: Work, agent: Agent, name: str, phase: str
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None: ...

    await work(agent)
    command = await standin.command("payments", name, phase=phase)
    error = failure(await standin.event(command, "failed"))
    assert (error.type, error.retryable, error.noeffect) == ("UnknownAction", True, True)


async def test_junk_is_taken_out_and_the_worker_goes_on(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None: ...

    reasons: list[str] = []
    await standin.wire.subscribe(
        "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.HW_COMMANDS.payments",
        lambda _subject, _reply, _headers, body: reasons.append(orjson.loads(body)["reason"]),
    )
    await work(agent)
    junk = [b"", b"\xff\x00", b"{}", b"[" * 10_000, b"null", b'{"id":1}', b"1" * 100_000]
    for number, body in enumerate(junk):
        subject = command_subject("payments", "charge", f"t{number}", "pay")
        await standin.send(subject, body)
    honest = await standin.command("payments", "charge", task="not-a-uuid")
    assert honest.task == "not-a-uuid"
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    await standin.all_acked()
    await eventually(lambda: len(reasons) == len(junk) + 1)
    assert all(reason.startswith(("not a command: ", "task: ")) for reason in reasons)


async def test_a_command_for_another_agent_is_refused_though_our_consumer_brings_it(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    """A consumer whose filter was changed, and a key that is the same for both."""
    called: list[str] = []

    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        called.append("")

    jetstream = standin.connection.nc.jetstream()
    await jetstream.delete_consumer(COMMANDS_STREAM, "payments")
    wide = ConsumerConfig(durable_name="payments", ack_policy=AckPolicy.EXPLICIT)
    await jetstream.add_consumer(COMMANDS_STREAM, wide)
    reasons: list[str] = []
    await standin.wire.subscribe(
        "hw.dead.HW_COMMANDS.payments",
        lambda _subject, _reply, _headers, body: reasons.append(orjson.loads(body)["reason"]),
    )
    await work(agent)
    await standin.command("mail", "charge")
    await eventually(lambda: reasons)
    assert reasons == ["the command is for agent 'mail', and this is 'payments'"]
    assert called == []
    await standin.all_acked()


async def test_a_command_on_anothers_subject_is_refused(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    called: list[str] = []

    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        called.append(ctx.step)

    await work(agent)
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    command.step = "other"
    subject = command_subject("payments", "charge", command.task, "pay")

    async def sent() -> bool:
        await standin.send(subject, orjson.dumps(command))
        return True

    await eventually(sent, what="the first command has left its subject")
    await standin.all_acked()
    assert called == ["pay"]


async def test_start_to_close_stops_the_handler_and_reports_it(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    stopped = asyncio.Event()

    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            assert ctx.cancelled
            stopped.set()

    await work(agent)
    command = await standin.command("payments", "charge", starttoclosems=100)
    event = await standin.event(command, "timedout")
    assert event.data is None
    await asyncio.wait_for(stopped.wait(), 5)
    await standin.all_acked()
    assert len(standin.of(command)) == 1


async def test_a_handler_that_cancels_itself_has_failed(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)

    await work(agent)
    command = await standin.command("payments", "charge")
    assert failure(await standin.event(command, "failed")).type == "CancelledError"
    await standin.all_acked()


async def test_a_handler_that_ignores_being_stopped_keeps_its_slot_not_its_command(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    release = asyncio.Event()

    @agent.action("charge")
    async def charge(ctx: Context) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await release.wait()
        return "too late"

    running = await work(agent, concurrency=1)
    command = await standin.command("payments", "charge", starttoclosems=100)
    await standin.event(command, "timedout")
    await standin.all_acked()
    waiting = await standin.command("payments", "charge", starttoclosems=100)
    assert running.worker._look().busy == 1
    release.set()
    await standin.event(waiting, "timedout")
    assert len(standin.of(command)) == 1


async def test_a_thread_outlives_its_limit_and_keeps_its_slot(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    release = threading.Event()
    threads: list[str] = []

    @agent.action("charge")
    def charge(ctx: Context) -> str:
        threads.append(threading.current_thread().name)
        release.wait(20)
        return str(ctx.cancelled)

    running = await work(agent, concurrency=1)
    command = await standin.command("payments", "charge", starttoclosems=100)
    await standin.event(command, "timedout")
    await standin.all_acked()
    assert running.worker._look().busy == 1
    second = await standin.command("payments", "charge")
    release.set()
    assert (await standin.event(second, "completed")).data == EventData(result="False")
    assert threads == ["payments.charge"] * 2
    assert len(standin.of(command)) == 1


async def test_concurrency_is_bounded_and_used(standin: StandIn, work: Work, agent: Agent) -> None:
    now = most = 0

    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1

    await work(agent, concurrency=5)
    commands = [await standin.command("payments", "charge") for _ in range(40)]
    await eventually(lambda: all(standin.of(command, "completed") for command in commands))
    assert most == 5


async def test_sync_handlers_run_beside_each_other(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    barrier = threading.Barrier(4, timeout=10)

    @agent.action("charge")
    def charge(ctx: Context) -> None:
        barrier.wait()

    await work(agent)
    commands = [await standin.command("payments", "charge") for _ in range(4)]
    await eventually(lambda: all(standin.of(command, "completed") for command in commands))


async def test_a_thread_that_cannot_be_started_is_a_failure_and_costs_no_slot(
    standin: StandIn, work: Work, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    @agent.action("charge")
    def charge(ctx: Context) -> str:
        return "done"

    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    await work(agent, concurrency=1)
    with monkeypatch.context() as patch:
        patch.setattr("headway.agents.threads.threading.Thread", Refused)
        command = await standin.command("payments", "charge")
        error = failure(await standin.event(command, "failed"))
    assert (error.type, error.retryable) == ("RuntimeError", True)
    command = await standin.command("payments", "charge")
    assert (await standin.event(command, "completed")).data == EventData(result="done")


async def test_a_command_without_any_data_is_refused(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None: ...

    await work(agent)
    command = await standin.command("payments", "charge", data=None)
    await standin.all_acked()
    assert standin.of(command) == []


async def test_a_start_is_stored_before_the_handler_begins(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None: ...

    await work(agent)
    command = await standin.command("payments", "charge", reportstart=True)
    await standin.event(command, "completed")
    assert [each.type.rpartition(".")[2] for each in standin.of(command)] == [
        "started",
        "completed",
    ]


async def test_a_handler_that_could_not_begin_at_once_asks_whether_it_still_may(
    standin: StandIn, work: Work, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        pytest.fail("it was given up")

    monkeypatch.setattr(attempt, "BEGIN_WITHIN_S", 0.0)
    standin.decide = lambda claim: ClaimReply(granted=False, reason="given up")
    await work(agent)
    command = await standin.command("payments", "charge", reportstart=True)
    await standin.all_acked()
    assert [each.type.rpartition(".")[2] for each in standin.of(command)] == ["started"]
    assert len(standin.claims) == 1


@pytest.mark.parametrize("sync", [False, True])
async def test_heartbeats_are_said_but_not_more_often_than_needed(
    standin: StandIn, work: Work, agent: Agent, sync: bool
) -> None:
    goon = threading.Event()

    def beats(command: Command) -> int:
        return len(standin.of(command, "heartbeat"))

    if sync:

        @agent.action("charge")
        def charge(ctx: Context) -> None:
            while not goon.wait(0.001):
                ctx.beat()
    else:

        @agent.action("charge")
        async def charge_async(ctx: Context) -> None:
            while not goon.is_set():
                await ctx.heartbeat()
                await asyncio.sleep(0.001)

    await work(agent)
    command = await standin.command("payments", "charge", heartbeatms=150)
    started = asyncio.get_running_loop().time()
    await eventually(lambda: beats(command) >= 3)
    goon.set()
    await standin.event(command, "completed")
    took_s = asyncio.get_running_loop().time() - started
    assert beats(command) <= 2 + took_s / 0.05
    assert len({each.id for each in standin.of(command)}) == beats(command) + 1


async def test_no_heartbeat_is_said_where_none_is_wanted(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        await ctx.heartbeat()

    await work(agent)
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    assert len(standin.of(command)) == 1


async def test_a_stop_hint_reaches_the_attempt_that_it_names_only(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> str:
        await ctx.wait_cancelled()
        return "stopped early"

    running = await work(agent)
    unwanted = await standin.command("payments", "charge")
    wanted = await standin.command("payments", "charge")
    await eventually(lambda: running.worker._look().busy == 2)
    for task, step, body in (
        (unwanted.task, "another", b"9"),
        (unwanted.task, unwanted.step, b"0"),
        (unwanted.task, unwanted.step, b"junk"),
        (unwanted.task, unwanted.step, b"1"),
    ):
        standin.wire.publish(stop_subject("payments", task, step), body)
        await standin.wire.flush()
        assert body == b"1" or standin.of(unwanted) == []
    event = await standin.event(unwanted, "completed")
    assert event.data == EventData(result="stopped early")
    assert standin.of(wanted) == []


async def test_presence_says_who_is_there_and_what_it_can_do(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None: ...

    running = await work(agent, concurrency=9)
    await eventually(lambda: len(standin.presences) >= 2)
    first = standin.presences[0]
    assert (first.agent, first.worker, first.actions) == (
        "payments",
        running.worker.name,
        ["charge"],
    )
    assert (first.slots, first.busy, first.stopping) == (9, 0, False)
    await running.end()
    await eventually(lambda: standin.presences[-1].stopping)


async def test_what_is_done_leaves_nothing_for_the_garbage_collector(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context) -> None: ...

    def kept() -> int:
        return sum(isinstance(each, Attempt | Context) for each in gc.get_objects())

    await work(agent)
    gc.collect()
    before = kept()
    gc.disable()
    try:
        commands = [await standin.command("payments", "charge") for _ in range(20)]
        await eventually(lambda: all(standin.of(each, "completed") for each in commands))
        await standin.all_acked()
        after = kept()
    finally:
        gc.enable()
    assert after == before


async def test_a_hint_that_the_server_was_made_to_send_stops_no_handler(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    """As an answer to somebody's direct get, wanted on this subject, would come."""
    began = asyncio.Event()

    @agent.action("charge")
    async def charge(ctx: Context) -> str:
        began.set()
        try:
            await asyncio.wait_for(ctx.wait_cancelled(), 0.3)
        except TimeoutError:
            return "went on"
        return "stopped"

    await work(agent)
    command = await standin.command("payments", "charge")
    await began.wait()
    hint = stop_subject("payments", command.task, "pay")
    await standin.connection.nc.publish(hint, b"1", headers={"Nats-Stream": "HW_PAYLOADS"})
    event = await standin.event(command, "completed")
    assert event.data is not None
    assert event.data.result == "went on"
