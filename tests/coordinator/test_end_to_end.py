"""Sagas from submission to end, through real servers, workers and coordinators."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import orjson
import pytest
from harness.coordination import client_of, coordinators, registered, working
from harness.eventually import eventually
from headway.agents import (
    EMPTY,
    Agent,
    Conflict,
    Context,
    InvalidInput,
    NotFound,
    Refused,
    Reject,
    connect,
)
from headway.agents.identity import new_task_id
from headway.agents.views import WAIT_MAX_S, TaskView
from headway.sagas import Retry, Saga, Timeouts
from pydantic import BaseModel


class Order(BaseModel):
    number: int


@dataclass
class Shop:
    """An agent that remembers what it did, and fails where it is told to."""

    agent: Agent
    log: list[tuple[str, str, int]]
    failing: dict[str, Exception]


def shop(name: str = "shop") -> Shop:
    agent = Agent(name)
    made = Shop(agent, [], {})

    def act(action: str) -> None:
        async def handle(ctx: Context, order: Order) -> dict[str, int]:
            made.log.append((action, ctx.phase, ctx.attempt))
            if action in made.failing:
                raise made.failing[action]
            return {"number": order.number}

        agent.action(action)(handle)

    def undo(action: str) -> None:
        async def handle(ctx: Context, order: Order, result: dict[str, int] | None):
            made.log.append((action, ctx.phase, ctx.attempt))
            if action in made.failing:
                raise made.failing[action]
            return EMPTY if result is None else None

        agent.compensation(action)(handle)

    for letter in "abc":
        act(letter)
        undo(f"undo-{letter}")
    return made


QUICK = Retry(initial_interval=0.05, maximum_interval=0.1, maximum_attempts=3)


def linear(name: str = "linear", **policies) -> Saga:
    saga, before = Saga(name, input=Order), ()
    for letter in "abc":
        saga.step(
            letter,
            f"shop.{letter}",
            compensate=f"shop.undo-{letter}",
            after=before,
            retry=QUICK,
            compensation_retry=QUICK,
            **policies,
        )
        before = letter
    return saga


@pytest.fixture
async def client(nats_url, postgres_url):
    async with coordinators(nats_url, postgres_url), client_of(nats_url) as client:
        await registered(client, linear())
        yield client


async def test_a_task_runs_its_steps_in_order_and_succeeds(client, nats_url):
    made = shop()
    async with working(nats_url, made.agent):
        receipt = await client.submit("linear", {"number": 7})
        view = await client.result(receipt.task, timeout=10)
    assert view.status == "succeeded"
    assert view.results == {letter: {"number": 7} for letter in "abc"}
    assert made.log == [(letter, "action", 1) for letter in "abc"]
    history = await client.history(receipt.task)
    assert [entry.version for entry in history] == list(range(1, 9))


async def test_a_rejected_step_undoes_those_before_it_in_reverse(client, nats_url):
    made = shop()
    made.failing["c"] = Reject("no stock", kind="OutOfStock")
    async with working(nats_url, made.agent):
        receipt = await client.submit("linear", {"number": 1})
        view = await client.result(receipt.task, timeout=10)
    assert view.status == "compensated"
    assert "OutOfStock" in view.reason
    assert [name for name, *_ in made.log] == ["a", "b", "c", "undo-b", "undo-a"]


async def test_a_fault_is_retried_and_then_unknown_and_undone_too(client, nats_url):
    made = shop()
    made.failing["b"] = RuntimeError("connection reset")
    async with working(nats_url, made.agent):
        receipt = await client.submit("linear", {"number": 1})
        view = await client.result(receipt.task, timeout=10)
    assert view.status == "compensated"
    assert [entry for entry in made.log if entry[0] == "b"] == [
        ("b", "action", 1),
        ("b", "action", 2),
        ("b", "action", 3),
    ]
    assert [name for name, *_ in made.log][-2:] == ["undo-b", "undo-a"]


async def test_a_failed_compensation_parks_with_the_chain_and_a_person_can_retry(client, nats_url):
    made = shop()
    made.failing |= {"c": Reject("no"), "undo-b": RuntimeError("down")}
    async with working(nats_url, made.agent):
        receipt = await client.submit("linear", {"number": 1})
        view = await client.result(receipt.task, timeout=10)
        assert view.status == "failed_to_compensate"
        assert "undo" in view.reason or "b" in view.reason
        steps = {step.name: step.status for step in view.steps}
        assert steps == {"a": "completed", "b": "failed_to_compensate", "c": "failed"}
        assert [each.task for each in (await client.parked()).waiting] == [receipt.task]
        assert set(view.actions) == {"retry", "resume", "settle"}
        del made.failing["undo-b"]
        await client.retry(receipt.task, "b")
        view = await client.result(receipt.task, timeout=10)
    assert view.status == "compensated"
    assert (await client.parked()).waiting == []


async def test_a_person_can_settle_a_failed_compensation_by_hand(client, nats_url):
    made = shop()
    made.failing |= {"c": Reject("no"), "undo-b": Reject("cannot")}
    async with working(nats_url, made.agent):
        receipt = await client.submit("linear", {"number": 1})
        await client.result(receipt.task, timeout=10)
        with pytest.raises(Refused, match="not stuck"):
            await client.settle(receipt.task, "a", "happened")
        await client.settle(receipt.task, "b", "happened", reason="called the bank")
        view = await client.result(receipt.task, timeout=10)
    assert view.status == "compensated"
    assert ("undo-a", "compensation", 1) in made.log


async def test_cancelling_a_task_that_waits_for_an_absent_agent_ends_it_at_once(client, nats_url):
    made = shop()
    receipt = await client.submit("linear", {"number": 1})
    waiting = await client.status(receipt.task)
    assert waiting.steps[0].waiting_for == "agent 'shop' (no instance is connected)"
    assert waiting.actions == ["cancel"]
    await client.cancel(receipt.task, reason="changed my mind")
    view = await client.result(receipt.task, timeout=5)  # nobody had begun, so nobody is waited for
    assert (view.status, view.reason) == ("compensated", "changed my mind")
    assert {step.status for step in view.steps} == {"failed", "skipped"}
    with pytest.raises(Conflict, match="cannot be cancelled"):
        await client.cancel(receipt.task)
    with pytest.raises(NotFound):
        await client.cancel(new_task_id())
    async with working(nats_url, made.agent):
        assert (await client.run("linear", {"number": 2}, timeout=10)).status == "succeeded"
    assert len(made.log) == 3


async def test_past_the_pivot_there_is_only_forward(client, nats_url):
    made = shop()
    saga = Saga("forward")
    saga.step("a", "shop.a", compensate="shop.undo-a", retry=QUICK)
    saga.step("b", "shop.b", after="a", pivot=True, retry=QUICK)
    saga.step("c", "shop.c", after="b", retry=QUICK)
    await registered(client, saga)
    made.failing["c"] = RuntimeError("mail is down")
    async with working(nats_url, made.agent):
        receipt = await client.submit("forward", {"number": 1})
        view = await client.result(receipt.task, timeout=10)
        assert view.status == "parked"
        assert "mail is down" in view.reason
        with pytest.raises(Conflict, match="point of no return"):
            await client.cancel(receipt.task)
        del made.failing["c"]
        await client.resume(receipt.task)
        view = await client.result(receipt.task, timeout=10)
    assert view.status == "succeeded"


async def test_a_handler_past_start_to_close_is_unknown_and_its_task_is_undone(client, nats_url):
    agent, undone = Agent("slow"), []

    @agent.action("hang")
    async def hang(ctx: Context) -> None:
        await asyncio.Event().wait()

    @agent.compensation("unhang")
    async def unhang(ctx: Context):
        undone.append(ctx.outcome_unknown)
        return EMPTY

    saga = Saga("slow").step(
        "hang",
        "slow.hang",
        compensate="slow.unhang",
        retry=Retry(maximum_attempts=1),
        timeouts=Timeouts(start_to_close=0.2),
    )
    await registered(client, saga)
    async with working(nats_url, agent):
        receipt = await client.submit("slow", None)
        view = await client.result(receipt.task, timeout=10)
    assert view.status == "compensated"
    assert undone == [True]
    assert "Timeout.start_to_close" in view.reason


async def test_schedule_to_start_of_an_agent_that_is_not_there_runs_out(client):
    saga = Saga("nobody").step(
        "ask",
        "nobody.ask",
        read_only=True,
        retry=Retry(maximum_attempts=1),
        timeouts=Timeouts(schedule_to_start=0.3),
    )
    await registered(client, saga)
    receipt = await client.submit("nobody", None)
    view = await client.result(receipt.task, timeout=10)
    assert view.status == "compensated"
    assert "Timeout.schedule_to_start" in view.reason


async def test_an_agent_that_comes_late_finds_the_task_waiting(client, nats_url):
    made = shop()
    receipt = await client.submit("linear", {"number": 1})
    view = await client.status(receipt.task)
    assert "no instance is connected" in view.steps[0].waiting_for
    async with working(nats_url, made.agent):
        assert (await client.result(receipt.task, timeout=10)).status == "succeeded"


async def test_plain_json_by_any_nats_client_becomes_a_task(client, nats_url):
    made = shop()
    async with working(nats_url, made.agent):
        connection = await connect(nats_url, name="anybody")
        ack = await connection.nc.jetstream().publish("hw.tasks.linear", b'{"number": 5}')
        assert ack.stream == "HW_TASKS"
        rows = await eventually(lambda: ended(client), 10)
        assert rows[0].saga == "linear"
        await connection.close()


async def ended(client):
    return (await client.list(status=["succeeded"])).tasks


async def test_submitting_twice_is_harmless_and_another_body_is_a_conflict(client):
    task = new_task_id()
    assert (await client.submit("linear", {"number": 1}, task=task)).created
    assert not (await client.submit("linear", {"number": 1}, task=task)).created
    with pytest.raises(Conflict, match="another body"):
        await client.submit("linear", {"number": 2}, task=task)


async def test_what_cannot_be_accepted_is_refused_with_the_reason(client):
    with pytest.raises(NotFound, match="no saga 'none'"):
        await client.submit("none", {})
    with pytest.raises(InvalidInput, match="number"):
        await client.submit("linear", {"number": "seven"})
    with pytest.raises(InvalidInput, match="1 MiB"):
        await client.submit("linear", {"number": 1, "text": "x" * 1_048_576})
    with pytest.raises(NotFound):
        await client.status(new_task_id())
    other = Saga("linear").step("a", "shop.a", read_only=True)
    with pytest.raises(Conflict, match="raise the version"):
        await client.register(other.define())
    with pytest.raises(InvalidInput, match="not a saga definition"):
        await client.register(b'{"name": 5}')


async def test_inputs_between_256_kib_and_1_mib_travel_both_ways(client, nats_url):
    agent = Agent("big")

    @agent.action("echo")
    async def echo(ctx: Context, text: str) -> str:
        return text

    await registered(client, Saga("big").step("echo", "big.echo", read_only=True))
    async with working(nats_url, agent):
        for size in (200_000, 400_000, 1_000_000):
            text = "x" * size
            confirmed = (await client.submit("big", text)).task
            published = await client.publish("big", text)
            for task in (confirmed, published):
                view = await client.result(task, timeout=20)
                assert view.results == {"echo": text}


async def test_lists_filter_and_page(client):
    tasks = [
        (await client.submit("linear", {"number": n}, attributes={"shop": str(n % 2)})).task
        for n in range(7)
    ]
    page = await client.list(limit=3, status=["running"])
    assert [row.task for row in page.tasks] == tasks[:-4:-1]
    rest = await client.list(limit=100, status=["running"], cursor=page.cursor)
    assert [row.task for row in rest.tasks] == tasks[3::-1]
    assert rest.cursor is None
    odd = await client.list(attributes={"shop": "1"})
    assert {row.task for row in odd.tasks} == set(tasks[1::2])
    assert (await client.list(saga="other")).tasks == []
    with pytest.raises(InvalidInput, match="cursor"):
        await client.list(cursor="junk")


async def test_watch_shows_each_change_until_the_end(client, nats_url):
    made = shop()
    receipt = await client.submit("linear", {"number": 1})
    seen = []

    async def watch() -> None:
        async for view in client.watch(receipt.task):
            seen.append(view.version)

    watching = asyncio.create_task(watch())
    await eventually(lambda: seen)
    async with working(nats_url, made.agent):
        await asyncio.wait_for(watching, 10)
    assert seen == sorted(set(seen))
    assert seen[-1] == 8


async def test_the_service_is_found_by_any_nats_client(client, nats_url):
    connection = await connect(nats_url, name="anybody")
    info = await connection.wire.request("$SRV.INFO.headway", b"", 2)
    endpoints = {endpoint["subject"] for endpoint in orjson.loads(info.data)["endpoints"]}
    assert {"hw.api.submit", "hw.api.saga.register", "hw.agents.*.claim"} <= endpoints
    await connection.close()


async def test_agents_are_listed_with_what_waits_for_them(client, nats_url):
    made = shop()
    await client.submit("linear", {"number": 1})
    views = await eventually(lambda: agents_with(client, queued=1), 5)
    assert [(view.agent, view.instances) for view in views] == [("shop", [])]
    async with working(nats_url, made.agent):
        view = (await eventually(lambda: agents_with(client, instances=1), 5))[0]
        assert view.instances[0].actions


async def agents_with(client, *, queued: int | None = None, instances: int = 0):
    found = (await client.agents()).agents
    return [
        view
        for view in found
        if (queued is None or view.queued == queued) and len(view.instances) >= instances
    ]


async def test_running_a_task_is_submitting_it_and_waiting_for_its_end(client, nats_url):
    made = shop()
    async with working(nats_url, made.agent):
        view = await client.run("linear", {"number": 3}, timeout=10)
        assert view.status == "succeeded"
        with pytest.raises(InvalidInput, match="number"):
            await client.run("linear", {}, timeout=10)


async def test_a_coordinator_that_leaves_keeps_nobody_waiting(nats_url, postgres_url):
    request = {"saga": "linear", "input": {"number": 1}, "wait_s": WAIT_MAX_S}
    async with client_of(nats_url) as client:
        async with coordinators(nats_url, postgres_url) as [coordinator]:
            await registered(client, linear())
            began_at = time.monotonic()
            waiting = asyncio.create_task(client.ask("run", orjson.dumps(request), TaskView))
            await eventually(lambda: coordinator._settled._waiting)
        view = await waiting
    assert view.status == "running"
    assert time.monotonic() - began_at < WAIT_MAX_S


async def test_many_submissions_are_each_accepted_or_refused_by_themselves(client):
    inputs = [{"number": n} for n in range(300)]
    inputs[7] = {"number": "seven"}
    inputs[150] = {"number": 150, "text": "x" * 10_000}
    inputs[151] = {"number": 151, "text": "x" * 1_048_576}
    inputs[299] = {"number": object()}
    told: list[int] = []
    outcomes = await client.submit_many("linear", inputs, progress=told.append)
    refused = {number for number, each in enumerate(outcomes) if isinstance(each, Exception)}
    assert refused == {7, 151, 299}
    assert all(isinstance(outcomes[number], InvalidInput) for number in refused)
    assert told[-1] == 300
    tasks = {each.task for number, each in enumerate(outcomes) if number not in refused}
    assert len(tasks) == 297
    listed = (await client.list(limit=500)).tasks
    assert {row.task for row in listed} == tasks


async def test_what_cannot_be_kept_as_json_is_refused_where_it_arises(client, nats_url):
    nest = "[" * 70 + "]" * 70
    for bad in (float("nan"), 10**40, orjson.loads(nest)):
        with pytest.raises(InvalidInput):
            await client.submit("linear", {"number": 1, "x": bad})
    agent, bad_results = Agent("odd"), {"nan": [float("inf")], "deep": orjson.loads(nest)}

    @agent.action("give")
    async def give(ctx: Context, kind: str) -> object:
        return bad_results[kind]

    await registered(client, Saga("odd").step("give", "odd.give", read_only=True))
    async with working(nats_url, agent):
        for kind in bad_results:
            view = await client.run("odd", kind, timeout=10)
            assert view.status == "compensated"
            assert "InvalidResult" in view.reason


async def test_a_nul_in_somebodys_words_spoils_no_list(client, nats_url):
    made = shop()
    made.failing["a"] = Reject("no\0thing", kind="Od\0d")
    async with working(nats_url, made.agent):
        view = await client.run("linear", {"number": 1}, timeout=10)
    assert "thing" in view.reason
    assert "\0" not in view.reason
    assert [row.reason for row in (await client.list()).tasks] == [view.reason]
    with pytest.raises(InvalidInput, match="NUL"):
        await client.cancel(view.task, reason="\0")


async def test_what_is_published_on_the_api_without_asking_is_ignored(client, nats_url, caplog):
    connection = await connect(nats_url, name="anybody")
    for operation in ("submit", "get", "saga.register", "agents"):
        connection.wire.publish(f"hw.api.{operation}", b"junk")
    await connection.wire.flush()
    assert (await client.health()).status == "ok"
    await connection.close()
    assert not [record for record in caplog.records if record.exc_info]
