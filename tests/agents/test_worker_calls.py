"""The worker and the journal: what is opened when, what stops an attempt, what it reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from harness.eventually import eventually
from headway.agents import (
    Agent,
    Attempts,
    Call,
    Context,
    Halted,
    HandOff,
    Next,
    Superseded,
    ToolError,
    tool,
)
from headway.agents.entries import (
    BUDGET_SPENT,
    LOOP_DETECTED,
    OUT_OF_ORDER,
    SUPERSEDED,
    TOOL_NOT_ALLOWED,
    TRIPPED,
    NewEntry,
)
from headway.agents.messages import CommandData, Event, FailureData, NextStep

StandIn = Any
Journals = Any
Work = Callable[..., Any]
ONCE = Attempts(maximum_attempts=1)


def failure(event: Event) -> FailureData:
    assert event.data is not None
    assert event.data.error is not None
    return event.data.error


@tool(recovery="natural")
async def look(number: int) -> int:
    return number + 1


@tool(recovery="manual")
async def valve(number: int) -> None:
    raise ConnectionError("reset")


@pytest.fixture
def agent() -> Agent:
    return Agent("payments")


class Refusal(NamedTuple):
    code: int
    kind: str
    reason: str


def refusing(operation: str, refusal: Refusal) -> Any:
    """What the stand-in for journals says to each request for `operation`."""
    return lambda asked, request: refusal if asked == operation else None


async def test_a_handler_that_calls_nothing_never_opens_its_journal(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> Any:
        return ctx.restore()

    await work(agent)
    command = await standin.command("payments", "charge")
    assert (await standin.event(command, "completed")).data.result is None
    assert journals.requests == []


async def test_calls_go_through_the_coordinators_journal(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> int:
        return await ctx.call(look, await ctx.call(look, 1))

    running = await work(agent)
    command = await standin.command("payments", "charge")
    assert (await standin.event(command, "completed")).data.result == 3
    [opened] = journals.heard("journal.open")
    assert (opened.attempt, opened.epoch) == (1, 0)
    assert opened.worker == running.worker.name
    kinds = [[entry.kind for entry in each.entries] for each in journals.heard("journal.append")]
    assert kinds == [["intent"], ["result", "checkpoint"]] * 2
    assert [each.seq for each in journals.heard("journal.append")] == [1, 2, 4, 5]


async def test_an_attempt_that_is_taken_up_opens_its_journal_before_the_handler(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    seen: list[Any] = []

    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> None:
        seen.append((len(journals.heard("journal.open")), ctx.restore(), ctx.epoch))

    await work(agent)
    first = await standin.command("payments", "charge")
    await standin.event(first, "completed")
    journal = journals.of(first)
    state = {"cause": "agent", "after": 0, "chain": "", "state": {"page": 3}}
    await journal.append(1, 1, [NewEntry(kind="checkpoint", data=state)])
    for changes in ({"epoch": 1}, {"attempt": 2}):
        await standin.command("payments", "charge", task=first.task, **changes)
        await standin.all_acked()
    assert seen == [(0, None, 0), (1, {"page": 3}, 2), (2, {"page": 3}, 0)]


async def test_what_is_open_is_settled_or_the_task_held_before_the_handler_runs(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    called: list[int] = []

    @agent.action("charge", tools=[valve])
    async def charge(ctx: Context) -> None:
        called.append(ctx.attempt)
        await ctx.call(valve, 1)

    await work(agent)
    first = await standin.command("payments", "charge")
    error = failure(await standin.event(first, "failed"))
    assert (error.type, error.hold) == ("Unsettled", True)
    assert "ConnectionError: reset; settle it, then resume the task" in error.message
    second = await standin.command("payments", "charge", task=first.task, attempt=2)
    error = failure(await standin.event(second, "failed"))
    assert (error.type, error.hold) == ("Unsettled", True)
    assert "its worker was lost during the call" in error.message
    assert called == [1]


@pytest.mark.parametrize("operation", ["journal.open", "journal.append"])
async def test_a_superseded_attempt_leaves_no_event_whatever_its_handler_does(
    standin: StandIn,
    journals: Journals,
    work: Work,
    agent: Agent,
    operation: str,
) -> None:
    """Nor does it ack: another worker has the command."""
    ends: list[str] = []

    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> str:
        for _ in range(2):
            try:
                await ctx.call(look, 1)
            except Superseded as error:
                ends.append(str(error))
        return "as if nothing had happened"

    refusal = Refusal(409, SUPERSEDED, "another worker has it")
    journals.refuse = refusing(operation, refusal)
    await work(agent)
    command = await standin.command("payments", "charge")
    await eventually(lambda: len(ends) >= 2)
    standin.decide = lambda claim: None  # it comes again, and nobody answers
    await eventually(lambda: standin.claims)
    assert ends == ["another worker has it"] * 2
    assert standin.of(command) == []
    assert await standin.queued() == 1


GUARDS = [
    (403, TOOL_NOT_ALLOWED, "ToolNotAllowed"),
    (402, BUDGET_SPENT, "BudgetSpent"),
    (409, LOOP_DETECTED, "LoopDetected"),
    (409, TRIPPED, "Tripped"),
    (409, OUT_OF_ORDER, "JournalMismatch"),
]


async def test_a_halted_attempt_is_reported_as_that_whatever_its_handler_does(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> str:
        try:
            await ctx.call(look, 1)
        except Halted as halted:
            return halted.kind
        return "not halted"

    await work(agent)
    for code, kind, told in GUARDS:
        journals.refuse = refusing("journal.append", Refusal(code, kind, "in words"))
        command = await standin.command("payments", "charge")
        error = failure(await standin.event(command, "failed"))
        assert (error.type, error.message, error.hold) == (told, "in words", True)
        assert (error.retryable, error.noeffect) == (True, False)
    await standin.all_acked()


async def test_a_tools_failure_that_is_not_caught_is_the_attempts(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    @tool(recovery="natural", retry=ONCE)
    async def refuse(final: bool) -> None:
        raise ToolError("no funds", retryable=not final)

    @agent.action("charge", tools=[refuse])
    async def charge(ctx: Context, final: bool) -> None:
        await ctx.call(refuse, final)

    await work(agent)
    for final in (True, False):
        command = await standin.command("payments", "charge", data=CommandData(input=final))
        error = failure(await standin.event(command, "failed"))
        assert (error.type, error.retryable, error.hold) == ("ToolError", not final, False)
        assert error.message == "tool 'refuse' failed: ToolError: no funds"


async def test_a_request_without_an_answer_is_asked_again_as_it_was(
    standin: StandIn,
    journals: Journals,
    work: Work,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headway.agents.journal.TRY_TIMEOUT_S", 0.1)

    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> int:
        return await ctx.call(look, 1)

    journals.deaf = True
    await work(agent)
    command = await standin.command("payments", "charge")
    await eventually(lambda: len(journals.heard("journal.open")) >= 3)
    journals.deaf = False
    assert (await standin.event(command, "completed")).data.result == 2


async def test_an_attempt_waits_for_a_journal_no_longer_than_it_may(
    standin: StandIn,
    journals: Journals,
    work: Work,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headway.agents.journal.TRY_TIMEOUT_S", 0.1)

    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> int:
        return await ctx.call(look, 1)

    journals.deaf = True
    await work(agent)
    command = await standin.command("payments", "charge", starttoclosems=300)
    await standin.event(command, "timedout")
    await standin.all_acked()
    heard = len(journals.requests)
    await asyncio.sleep(0.3)  # the very thing under test: nobody goes on asking
    assert len(journals.requests) == heard


async def test_entries_that_gather_are_appended_together(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> list[int]:
        return await asyncio.gather(*(ctx.call(look, number) for number in range(100)))

    await work(agent)
    command = await standin.command("payments", "charge")
    assert (await standin.event(command, "completed")).data.result == list(range(1, 101))
    requests = journals.heard("journal.append")
    assert len(requests) < 20
    assert max(len(each.entries) for each in requests) <= 64
    journal = journals.of(command)
    assert [entry.data["number"] for entry in journal.of_kind("intent")] == list(range(100))
    assert [entry.seq for entry in journal.entries] == list(range(1, len(journal.entries) + 1))


async def test_of_entries_appended_together_only_the_refused_one_suffers(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    """The guard stops one call; the result that travelled with its intent is kept."""
    ended = asyncio.Event()

    @tool(recovery="dedupe_key")
    async def slow(call: Call) -> str:
        await ended.wait()
        return "done"

    @agent.action("charge", tools=[look, slow])
    async def charge(ctx: Context) -> str:
        working = asyncio.create_task(ctx.call(slow))
        await eventually(lambda: len(journals.heard("journal.append")) == 1)
        journals.answering.clear()
        noting = asyncio.create_task(ctx.note("whose answer the others wait for"))
        await eventually(lambda: len(journals.heard("journal.append")) == 2)
        ended.set()
        await asyncio.sleep(0.02)  # so that the result gathers before the intent
        refused = asyncio.create_task(ctx.call(look, 1))
        await asyncio.sleep(0.02)
        journals.answering.set()
        await asyncio.wait({noting, refused})
        return await working

    def refuse(operation: str, request: Any) -> Any:
        if operation == "journal.append" and any(e.tool == "look" for e in request.entries):
            return Refusal(402, BUDGET_SPENT, "spent")
        return None

    journals.refuse = refuse
    await work(agent)
    command = await standin.command("payments", "charge")
    error = failure(await standin.event(command, "failed"))
    assert (error.type, error.hold) == ("BudgetSpent", True)
    together = [[e.kind for e in each.entries] for each in journals.heard("journal.append")]
    assert ["result", "intent", "checkpoint"] in together
    journal = journals.of(command)
    assert [entry.data for entry in journal.of_kind("result")] == ["done"]
    assert [entry.tool for entry in journal.of_kind("intent")] == ["slow"]


async def test_told_to_stop_it_keeps_how_far_it_came_before_it_hands_back(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    begun = asyncio.Event()

    @tool(recovery="natural")
    async def hang() -> None:
        begun.set()
        await asyncio.sleep(60)

    @agent.action("charge", tools=[hang])
    async def charge(ctx: Context) -> None:
        await ctx.call(hang)

    leaving = await work(agent, grace_s=0.05)
    command = await standin.command("payments", "charge")
    await begun.wait()
    await leaving.end()
    entries = journals.of(command).entries
    assert [(entry.kind, (entry.data or {}).get("cause")) for entry in entries] == [
        ("intent", None),
        ("checkpoint", "stop"),
    ]
    assert await standin.queued() == 1


async def test_told_to_stop_it_does_not_wait_long_for_a_coordinator(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    begun = asyncio.Event()

    @tool(recovery="natural")
    async def hang() -> None:
        journals.deaf = True
        begun.set()
        await asyncio.sleep(60)

    @agent.action("charge", tools=[hang])
    async def charge(ctx: Context) -> None:
        await ctx.call(hang)

    leaving = await work(agent, grace_s=0.05)
    await standin.command("payments", "charge")
    await begun.wait()
    await asyncio.wait_for(leaving.end(), 2.5)
    assert await standin.queued() == 1


async def test_a_fault_is_marked_in_the_journal(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> None:
        await ctx.note("hello")
        raise ValueError("oh")

    await work(agent)
    command = await standin.command("payments", "charge")
    assert failure(await standin.event(command, "failed")).type == "ValueError"
    causes = [entry.data["cause"] for entry in journals.of(command).of_kind("checkpoint")]
    assert causes == ["fault"]


async def test_calls_that_a_handler_did_not_wait_for_end_before_its_attempt(
    standin: StandIn, journals: Journals, work: Work, agent: Agent
) -> None:
    left: set[Any] = set()

    @agent.action("charge", tools=[look])
    async def charge(ctx: Context) -> str:
        left.add(asyncio.create_task(ctx.call(look, 1)))
        await asyncio.sleep(0)
        return "gone"

    await work(agent)
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    assert len(journals.of(command).of_kind("result")) == 1


async def test_an_action_hands_off_with_its_result(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("route")
    async def route(ctx: Context) -> HandOff[str]:
        return HandOff("refund it", Next("billing.refund", input=[ctx.goal, ctx.rejection]))

    @agent.compensation("unroute")
    async def unroute(ctx: Context) -> Any:
        return HandOff(None, Next("billing.refund"))

    await work(agent)
    data = CommandData(goal="be kind", rejection="too rude")
    command = await standin.command("payments", "route", data=data)
    event = await standin.event(command, "completed")
    assert event.data.result == "refund it"
    assert event.data.handoff == [NextStep("billing.refund", input=["be kind", "too rude"])]
    undo = await standin.command("payments", "unroute", phase="compensation")
    error = failure(await standin.event(undo, "failed"))
    assert error.message == "'unroute' is a compensation, and can hand off to nobody"


async def test_progress_is_told_and_the_last_is_never_left_out(
    standin: StandIn,
    work: Work,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether the step wants heartbeats or not."""
    monkeypatch.setattr("headway.agents.heartbeats.PROGRESS_INTERVAL_S", 0.1)
    done = asyncio.Event()

    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        for page in range(50):
            await ctx.heartbeat({"page": page})
        await done.wait()

    @agent.action("sync")
    def sync(ctx: Context) -> None:
        ctx.beat({"page": 1})

    await work(agent)
    for heartbeatms in (0, 300):
        done.clear()
        command = await standin.command("payments", "charge", heartbeatms=heartbeatms)
        await eventually(lambda c=command: len(standin.of(c, "heartbeat")) == 2)
        told = [each.data.progress for each in standin.of(command, "heartbeat")]
        assert told == [{"page": 0}, {"page": 49}]
        done.set()
        command = await standin.command("payments", "sync", heartbeatms=heartbeatms)
        assert (await standin.event(command, "heartbeat")).data.progress == {"page": 1}


async def test_progress_that_cannot_be_told_is_refused(
    standin: StandIn, work: Work, agent: Agent
) -> None:
    @agent.action("charge")
    async def charge(ctx: Context, large: bool) -> None:
        await ctx.heartbeat("x" * 20_000 if large else object())

    await work(agent)
    words = "progress: not JSON", "progress: 20002 bytes, more than 16384"
    for large in (False, True):
        command = await standin.command("payments", "charge", data=CommandData(input=large))
        error = failure(await standin.event(command, "failed"))
        assert error.type == "InvalidInput"
        assert error.message.startswith(words[large])
