"""Tools through a real coordinator: gates, guards, people, and what a task is held for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from harness.audit import audit
from harness.coordination import client_of, coordinators, registered, working
from harness.eventually import eventually
from harness.services import Servers
from headway.agents import (
    Agent,
    Attempts,
    Call,
    Client,
    Connection,
    Context,
    HandOff,
    Metered,
    Next,
    ToolFailed,
    connect,
    gates,
    tool,
)
from headway.agents.manifest import Manifest
from headway.agents.views import StepView, TaskView
from headway.sagas import Retry, Saga, Timeouts

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONCE = Attempts(maximum_attempts=1)
QUICK = Retry(initial_interval=0.05, maximum_interval=0.1, maximum_attempts=5)

agent = Agent("clerk")
ran: list[tuple[UUID, Any]] = []
connections: list[Connection] = []
seen = asyncio.Event()  # a progress


@tool(recovery="natural", retry=ONCE)
async def look(number: int) -> int:
    return number + 1


@tool(recovery="dedupe_key", sensitive=True)
async def pay(call: Call, amount: int) -> str:
    assert call.token is not None
    keys = await gates.public_keys(connections[0])
    gate = gates.verify(
        call.token,
        keys,
        tool="pay",
        arguments_digest=gates.arguments_digest((), {"amount": amount}),
    )
    assert (gate.invocation, gate.task) == (call.id, call.task)
    with pytest.raises(gates.GateRefused, match="the gate token was redeemed before"):
        await redeem(call)
    ran.append((call.task, ("pay", amount)))
    return f"paid {amount}"


@tool(recovery="dedupe_key", requires_approval=True, redeems=True)
async def refund(call: Call, amount: int) -> str:
    await redeem(call)
    ran.append((call.task, ("refund", amount)))
    return f"refunded {amount}"


async def redeem(call: Call) -> None:
    assert call.token is not None
    digest = call.arguments_digest
    await gates.redeem(connections[0], call.token, tool=call.tool, arguments_digest=digest)


@tool(recovery="manual")
async def valve(call: Call, number: int) -> str:
    ran.append((call.task, ("valve", number)))
    raise ConnectionError("reset")


@tool(recovery="natural", retry=ONCE)
async def broken() -> None:
    raise ValueError("no luck")


@tool(recovery="natural", model=True)
async def think(text: str) -> Metered[str]:
    ran.append((UUID(int=0), text))
    return Metered(f"{text}!", input_tokens=60, output_tokens=40, cost_usd=0.5)


@agent.action("pay", tools=[pay])
async def do_pay(ctx: Context, amount: int) -> str:
    return await ctx.call(pay, amount)


@agent.action("refund", tools=[refund])
async def do_refund(ctx: Context, amount: int) -> str:
    try:
        return await ctx.call(refund, amount, key="the refund")
    except ToolFailed as failed:
        return f"{failed.kind}: {failed.reason}"


@agent.action("valve", tools=[look, valve])
async def do_valve(ctx: Context, number: int) -> str:
    try:
        return await ctx.call(valve, await ctx.call(look, number))
    except Exception as error:
        return f"swallowed {type(error).__name__}"


@agent.action("round", tools=[look])
async def do_round(ctx: Context) -> None:
    for _ in range(50):
        await ctx.call(look, 1)


@agent.action("break", tools=[broken])
async def do_break(ctx: Context) -> None:
    await ctx.call(broken)


@agent.action("think", tools=[think])
async def do_think(ctx: Context, text: str) -> list[Any]:
    thoughts = [await ctx.call(think, f"{text} {n}") for n in range(2)]
    thoughts.append(await ctx.call(think, ctx.rejection or "first"))
    return [ctx.goal, ctx.usage.tokens, ctx.usage.cost_usd, *thoughts]


@agent.action("route")
async def do_route(ctx: Context, text: str) -> HandOff[str]:
    return HandOff("routed", Next("clerk.note", name="note", input=f"{text} handed on"))


@agent.action("note", tools=[])
async def do_note(ctx: Context, text: str) -> Any:
    await ctx.documents.collection("notes")
    await ctx.documents.put("notes", str(ctx.task), {"text": text}, expected=0)
    await ctx.heartbeat({"page": 3})
    await seen.wait()
    await ctx.note(text)
    await ctx.checkpoint({"text": text})
    return (await ctx.documents.get("notes", str(ctx.task))).body


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(module_servers: Servers) -> AsyncIterator[Client]:
    nats, url, _ = module_servers
    async with coordinators(nats.url, url), client_of(nats.url) as client:
        for action in sorted(agent.handlers):
            policies = {"retry": QUICK, "timeouts": Timeouts(heartbeat=10.0)}
            saga = Saga(action).step("do", f"clerk.{action}", pivot=True, **policies)
            await registered(client, saga)
        async with await connect(nats.url, name="clerk") as connection:
            connections.append(connection)
            async with working(nats.url, agent, connection=connection):
                yield client
            connections.clear()
    await audit(url)


async def run(client: Client, saga: str, input: Any, **manifest: Any) -> TaskView:
    bounds = Manifest(**manifest) if manifest else None
    return await client.run(saga, input, manifest=bounds, timeout=20)


def step(view: TaskView) -> StepView:
    return view.steps[0]


def effects(task: UUID) -> list[Any]:
    return [what for of, what in ran if of == task]


async def kinds(client: Client, task: UUID) -> list[str]:
    return [entry.kind async for entry in client.journal(task, "do")]


async def test_a_sensitive_tool_has_a_token_that_was_used_up(client: Client) -> None:
    view = await run(client, "pay", 7)
    assert (view.status, step(view).result) == ("succeeded", "paid 7")
    assert effects(view.task) == [("pay", 7)]


async def waiting_gate(client: Client, task: UUID) -> UUID:
    async def found() -> UUID | None:
        page = await client.parked()
        return next((w.invocation for w in page.waiting if w.task == task), None)

    invocation = await eventually(found, 10, what="a gate that waits for a person")
    assert invocation is not None
    return invocation


async def test_a_tool_that_needs_approval_waits_for_a_person(client: Client) -> None:
    receipt = await client.submit("refund", 120)
    invocation = await waiting_gate(client, receipt.task)
    assert effects(receipt.task) == []
    await client.approve(receipt.task, invocation=invocation, by="eve", reason="fine")
    view = await client.result(receipt.task, timeout=20)
    assert (view.status, step(view).result) == ("succeeded", "refunded 120")
    assert effects(receipt.task) == [("refund", 120)]


async def test_time_in_which_a_person_is_waited_for_is_not_the_attempts(client: Client) -> None:
    brisk = Timeouts(start_to_close=0.5)
    saga = Saga("brisk").step("do", "clerk.refund", pivot=True, retry=QUICK, timeouts=brisk)
    await registered(client, saga)
    receipt = await client.submit("brisk", 122)
    invocation = await waiting_gate(client, receipt.task)
    later = time.monotonic() + 3 * 0.5
    await eventually(lambda: time.monotonic() > later)
    waits = step(await client.status(receipt.task))
    assert (waits.waiting_for, waits.attempt) == ("a person's approval of a call", 1)
    await client.approve(receipt.task, invocation=invocation, by="eve", reason="fine")
    view = await client.result(receipt.task, timeout=20)
    assert (view.status, step(view).attempt, step(view).result) == ("succeeded", 1, "refunded 122")


async def test_a_call_that_a_person_rejects_has_failed_and_left_nothing(client: Client) -> None:
    receipt = await client.submit("refund", 121)
    invocation = await waiting_gate(client, receipt.task)
    await client.reject(receipt.task, invocation=invocation, by="eve", reason="too much")
    view = await client.result(receipt.task, timeout=20)
    assert step(view).result == "GateRejected: rejected by eve: too much"
    assert effects(receipt.task) == []
    assert await kinds(client, receipt.task) == ["intent", "failure", "checkpoint"]


@pytest.mark.parametrize(
    ("outcome", "result", "runs"),
    [("happened", "opened by hand", 1), ("did_not_happen", None, 2)],
)
async def test_a_call_that_nobody_can_tell_about_waits_for_a_person(
    client: Client, outcome: Any, result: Any, runs: int
) -> None:
    view = await run(client, "valve", 1)
    assert view.status == "parked"
    assert step(view).error is not None
    assert "nobody knows whether tool 'valve' took effect (key 'valve#1'" in view.reason
    await client.settle_call(view.task, "do", "valve#1", outcome, result, by="eve", reason="saw it")
    await client.resume(view.task, by="eve", reason="go on")
    view = await client.result(view.task, timeout=20)
    assert effects(view.task) == [("valve", 2)] * runs
    if outcome == "happened":
        assert (view.status, step(view).result) == ("succeeded", "opened by hand")
    else:
        assert view.status == "parked"


@pytest.mark.parametrize(
    ("saga", "input", "manifest", "words"),
    [
        ("pay", 8, {"tools": ["look"]}, "tool 'pay' is not one of the 1 that the task's manifest"),
        (
            "think",
            "a",
            {"max_tokens": 150},
            "the task's budget is spent: 200 of 150 tokens are used",
        ),
        ("think", "b", {"max_cost_usd": 0.9}, "the task's budget is spent: 1 of 0.9 US dollars"),
        ("round", None, {}, "the agent goes round in circles: 'look"),
        ("break", None, {}, "3 calls of tools failed in a row: a person must look before 'broken'"),
    ],
)
async def test_what_a_guard_stops_waits_for_a_person_with_its_reason(
    client: Client, saga: str, input: Any, manifest: Any, words: str
) -> None:
    view = await run(client, saga, input, **manifest)
    assert view.status == "parked"
    assert words in view.reason
    assert "resume" in view.actions
    assert effects(view.task) == []


async def test_an_output_that_is_not_accepted_is_made_anew_without_paying_twice(
    client: Client,
) -> None:
    """The questions that were asked before have their answers; only what is new is asked."""
    ran.clear()
    never = {"type": "array", "maxItems": 5}
    view = await run(client, "think", "c", acceptance=never, on_rejection="retry", goal="be brief")
    assert view.status == "parked"
    assert [what for _, what in ran][:3] == ["c 0", "c 1", "first"]
    assert len(ran) == 4
    assert "5" in str(ran[-1])  # why it was not accepted
    assert step(view).attempt > 2


async def test_a_hand_off_goes_on_with_its_own_input_and_documents_say_who_wrote(
    client: Client,
) -> None:
    seen.set()
    view = await run(client, "route", "a letter")
    assert view.status == "succeeded"
    assert view.results == {"do": "routed", "note": {"text": "a letter handed on"}}
    [version] = await client.documents.history("notes", str(view.task))
    assert (version.task, version.step) == (view.task, "note")


async def test_progress_is_seen_in_the_status(client: Client) -> None:
    seen.clear()
    receipt = await client.submit("note", "a letter")

    async def progress() -> Any:
        return step(await client.status(receipt.task)).progress

    assert await eventually(progress) == {"page": 3}
    seen.set()
    assert (await client.result(receipt.task, timeout=20)).status == "succeeded"


async def test_many_tasks_beside_each_other_each_have_their_own_journal(client: Client) -> None:
    views = await asyncio.gather(*(run(client, "pay", 100 + n) for n in range(20)))
    assert {view.status for view in views} == {"succeeded"}
    assert [step(view).result for view in views] == [f"paid {100 + n}" for n in range(20)]
