"""Calls of tools through a journal in memory: what is run, what is remembered, what is refused."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from headway.agents import (
    CANNOT_TELL,
    DID_NOT_HAPPEN,
    Attempts,
    Call,
    Context,
    DeclarationError,
    Halted,
    HandOff,
    Happened,
    HeadwayError,
    InvalidInput,
    JournalMismatch,
    Metered,
    Next,
    Reject,
    Superseded,
    ToolError,
    ToolFailed,
    tool,
)
from headway.agents.entries import UNDER_WAY_MAX, JournalAppended, NewEntry, Usage
from headway.agents.identity import invocation_id, operation_id
from headway.agents.messages import NextStep
from headway.agents.testing import TOKEN, MemoryJournal, context, opened, run
from headway.agents.trial import LONG_AGO, still_ours

TASK = UUID("6c0a6799-fe64-5d4a-ae62-3f9d806ea12c")
QUICK = Attempts(initial_interval=0.0, maximum_attempts=3)


class Panic(BaseException):
    """As some libraries raise them that are written in Rust."""


ran: list[Any] = []
"""What the tools below did, in order."""


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@dataclass
class Order:
    name: str
    total: int


class Taken(MemoryJournal):
    """A journal that another worker has once it is `lost`."""

    lost = False

    async def append(self, epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        if self.lost:
            raise Superseded("another worker has it")
        return await super().append(epoch, seq, entries)


@tool(recovery="natural")
async def lookup(order: str) -> Order:
    ran.append(("lookup", order))
    return Order(order, len(order))


@tool(recovery="dedupe_key")
async def pay(call: Call, amount: int) -> str:
    ran.append(("pay", amount, call.id))
    return f"paid {amount}"


@tool(recovery="natural", model=True)
def think(text: str) -> Metered[str]:
    ran.append(("think", text))
    return Metered(f"{text}!", input_tokens=10, output_tokens=5, cost_usd=0.25)


def resumed(journal: MemoryJournal, **changes: Any) -> Context:
    """The next worker's context."""
    return context(**{"task": TASK, "journal": journal, "tools": TOOLS} | changes)


TOOLS = [lookup, pay, think]


async def errand(ctx: Context) -> list[Any]:
    order = await ctx.call(lookup, "o-1")
    await ctx.checkpoint({"order": order})
    thoughts = await asyncio.gather(ctx.call(think, "a"), ctx.call(think, "b"))
    receipt = await ctx.call(pay, order.total, key="refund")
    await ctx.note("paid")
    return [order, thoughts, receipt]


async def test_a_call_is_in_the_journal_before_it_runs_and_its_result_before_it_returns() -> None:
    journal = MemoryJournal()
    seen: list[list[str]] = []

    @tool(recovery="natural")
    async def look() -> None:
        seen.append([entry.kind for entry in journal.entries])

    ctx = context(journal=journal)
    await ctx.call(look)
    seen.append([entry.kind for entry in journal.entries])
    assert seen == [["intent"], ["intent", "result", "checkpoint"]]


async def test_what_the_journal_keeps_of_a_call() -> None:
    journal = MemoryJournal()
    assert await context(journal=journal).call(think, "hm") == "hm!"
    intent, result, checkpoint = journal.entries
    assert (intent.key, intent.tool, intent.model, intent.data) == (
        "think#1",
        "think",
        True,
        {"text": "hm"},
    )
    assert len(intent.arguments_digest) == 64
    assert (result.key, result.tool, result.data, result.size) == ("think#1", "think", "hm!", 5)
    assert result.usage == Usage(input_tokens=10, output_tokens=5, cost_usd=0.25)
    assert len(result.datadigest) == 64
    assert (checkpoint.data["cause"], checkpoint.data["after"]) == ("result", 2)


async def test_cut_off_anywhere_a_handler_ends_the_same_and_does_nothing_twice() -> None:
    """At every entry: an effect whose result was written is not run again, all others are."""
    journal = MemoryJournal()
    whole = await errand(resumed(journal))
    length, once = len(journal.entries), list(ran)
    kinds = [entry.kind for entry in journal.entries]
    assert kinds.count("intent") == kinds.count("result") == 4
    for cut in range(length + 1):
        again = MemoryJournal()
        again.entries = list(journal.entries)
        again.cut(cut)
        known = {entry.key for entry in again.of_kind("result")}
        ran.clear()
        assert await errand(await opened(resumed(again))) == whole
        left = [each for each, key in zip(once, KEYS, strict=True) if key not in known]
        assert ran == left, f"cut after {cut}"
        assert [entry.seq for entry in again.entries] == list(range(1, len(again.entries) + 1))


KEYS = ["lookup#1", "think#1", "think#2", "refund"]


async def test_results_are_of_the_same_types_when_they_are_read_back() -> None:
    @tool(recovery="natural")
    async def pair() -> Any:
        return ("a", {"n": 1})

    journal = MemoryJournal()
    first = [await ctx.call(t, *a) for ctx in [context(journal=journal)] for t, a in _TWO(pair)]
    ctx = context(journal=journal)
    assert [await ctx.call(t, *a) for t, a in _TWO(pair)] == first
    assert first == [Order("o", 1), ["a", {"n": 1}]]


def _TWO(pair: Any) -> list[Any]:
    return [(lookup, ("o",)), (pair, ())]


async def test_the_same_invocation_has_the_same_id_in_every_run() -> None:
    journal = MemoryJournal()
    await resumed(journal).call(pay, 7, key="refund")
    journal.cut(1)
    ctx = await opened(resumed(journal))
    await ctx.call(pay, 7, key="refund")
    expected = invocation_id(operation_id(TASK, "step", "action"), "refund")
    assert ran == [("pay", 7, expected)] * 2


async def test_a_call_knows_how_often_it_was_run_and_by_when() -> None:
    seen: list[Call] = []

    @tool(recovery="dedupe_key", retry=QUICK, timeout=60)
    def flaky(call: Call) -> None:
        seen.append(call)
        if len(seen) % 3:
            raise ToolError("not yet")

    journal = MemoryJournal()
    ctx = context(task=TASK, journal=journal, tools=[flaky], deadline_at=4e9)
    await ctx.call(flaky)
    journal.cut(1)
    await (await opened(context(task=TASK, journal=journal, tools=[flaky]))).call(flaky)
    assert [call.attempt for call in seen] == [1, 2, 3, 2, 3, 4]
    assert {call.key for call in seen} == {"flaky#1"}
    assert {(call.task, call.token) for call in seen} == {(TASK, None)}
    assert all(call.deadline is not None and call.deadline.year < 2096 for call in seen)


async def test_a_sensitive_tool_is_given_leave_before_each_run() -> None:
    tokens: list[str | None] = []

    @tool(recovery="dedupe_key", sensitive=True, retry=QUICK)
    async def wire_money(call: Call) -> None:
        tokens.append(call.token)
        if len(tokens) < 2:
            raise ToolError("busy")

    journal = MemoryJournal()
    await context(journal=journal).call(wire_money)
    assert tokens == [TOKEN, TOKEN]
    assert journal.entries[0].sensitive


async def test_sync_tools_run_in_threads() -> None:
    threads: list[str] = []

    @tool(recovery="natural")
    def block() -> None:
        threads.append(threading.current_thread().name)

    await context().call(block)
    assert threads == ["block"]


async def test_calls_beside_each_other_run_beside_each_other() -> None:
    barrier = asyncio.Barrier(3)

    @tool(recovery="natural")
    async def meet(number: int) -> int:
        await barrier.wait()
        return number

    journal = MemoryJournal()
    ctx = context(journal=journal)
    calls = [ctx.call(meet, n) for n in range(3)]
    assert await asyncio.wait_for(asyncio.gather(*calls), 5) == [0, 1, 2]
    assert [entry.data["number"] for entry in journal.of_kind("intent")] == [0, 1, 2]


async def test_another_tool_at_a_place_is_a_mismatch_that_names_both() -> None:
    journal = MemoryJournal()
    await resumed(journal).call(lookup, "o-1")
    ctx = await opened(resumed(journal))
    with pytest.raises(JournalMismatch) as mismatch:
        await ctx.call(think, "o-1")
    digests = [entry.arguments_digest[:12] for entry in journal.of_kind("intent")]
    assert re.fullmatch(
        r"call 1 is of tool 'think' with arguments [0-9a-f]{12}…, but the journal has tool "
        rf"'lookup' with arguments {digests[0]}… there \(entry 1\): the handler changed, or does "
        "not do the same each time; give calls whose order may change a key=",
        str(mismatch.value),
    )
    assert ran == [("lookup", "o-1")]


async def test_other_arguments_at_a_place_or_under_a_key_are_a_mismatch() -> None:
    journal = MemoryJournal()
    ctx = resumed(journal)
    await ctx.call(lookup, "o-1")
    await ctx.call(pay, 7, key="refund")
    with pytest.raises(JournalMismatch, match="call 1 is of tool 'lookup' with arguments"):
        await resumed(journal).call(lookup, "o-2")
    with pytest.raises(JournalMismatch, match="the call with key 'refund' is of tool 'pay'"):
        await resumed(journal).call(pay, 8, key="refund")


async def test_calls_with_keys_may_change_places() -> None:
    journal = MemoryJournal()
    ctx = resumed(journal)
    first = [await ctx.call(pay, n, key=f"p{n}") for n in (1, 2, 3)]
    ctx = resumed(journal)
    second = [await ctx.call(pay, n, key=f"p{n}") for n in (3, 1, 2)]
    assert second == [first[2], first[0], first[1]]
    assert len(ran) == 3


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("a#1", "key='a#1': use at most 200 characters of Unicode, no # and no NUL"),
        ("\0", "no # and no NUL"),
        ("\ud800", "of Unicode"),
        ("x" * 201, "use at most 200 characters"),
        ("twice", "key='twice' is given to two calls; each needs its own"),
    ],
)
async def test_a_key_that_cannot_be_one_is_refused(key: str, words: str) -> None:
    ctx = context()
    await ctx.call(lookup, "o", key="twice")
    with pytest.raises(DeclarationError, match=re.escape(words)):
        await ctx.call(lookup, "o", key=key)


async def test_a_tool_that_the_action_does_not_declare_is_refused() -> None:
    with pytest.raises(DeclarationError) as refused:
        await context(tools=[lookup]).call(pay, 1)
    assert str(refused.value) == (
        "tool 'pay' is not one of this action's; write tools=[…, pay] at its decorator"
    )


async def test_without_declared_tools_there_is_no_journal() -> None:
    ctx = context()
    ctx.calls = None
    with pytest.raises(DeclarationError, match="the action has no journal; declare its tools"):
        await ctx.call(lookup, "o")
    with pytest.raises(DeclarationError, match="the action has no journal"):
        ctx.restore()
    assert ctx.usage == Usage()


async def test_a_harmless_tool_is_tried_three_times_and_then_its_failure_is_remembered() -> None:
    @tool(recovery="natural", retry=QUICK)
    async def broken(name: str) -> None:
        ran.append(name)
        raise ValueError("no luck")

    journal = MemoryJournal()
    for _ in range(2):
        with pytest.raises(ToolFailed) as failed:
            await context(task=TASK, journal=journal).call(broken, "x")
        assert str(failed.value) == "tool 'broken' failed: ValueError: no luck"
        assert (failed.value.kind, failed.value.no_effect) == ("ValueError", False)
    assert ran == ["x"] * 3
    again = [(entry.kind, (entry.data or {}).get("cause")) for entry in journal.entries[1:3]]
    assert again == [("checkpoint", "sure")] * 2  # before it is tried again
    assert [entry.kind for entry in journal.entries[3:]] == ["failure", "checkpoint"]


@pytest.mark.parametrize(
    ("raised", "tries", "kind"),
    [
        (ToolError("no", retryable=False), 1, "ToolError"),
        (ToolError("no"), 3, "ToolError"),
        (Reject("no", kind="CardDeclined"), 1, "CardDeclined"),
        (asyncio.CancelledError(), 3, "CancelledError"),
        (SystemExit(2), 3, "SystemExit"),
        (Panic("no"), 3, "Panic"),
    ],
)
@pytest.mark.parametrize("sync", [False, True])
async def test_what_a_tool_raises_says_whether_it_is_tried_again(
    raised: BaseException, tries: int, kind: str, sync: bool
) -> None:
    async def broken() -> None:
        ran.append(1)
        raise raised

    def broken_too() -> None:
        ran.append(1)
        raise raised

    function = tool(recovery="natural", retry=QUICK)(broken_too if sync else broken)
    with pytest.raises(ToolFailed) as failed:
        await context().call(function)
    assert failed.value.kind == kind
    assert len(ran) == tries


async def test_a_tool_that_takes_too_long_is_unknown_and_run_again_if_it_may() -> None:
    @tool(recovery="natural", retry=QUICK, timeout=0.02)
    async def slow() -> str:
        ran.append(1)
        if len(ran) < 3:
            await asyncio.sleep(60)
        return "at last"

    @tool(recovery="natural", retry=Attempts(maximum_attempts=1), timeout=0.02)
    async def slower() -> None:
        await asyncio.sleep(60)

    assert await context().call(slow) == "at last"
    with pytest.raises(ToolFailed, match="tool 'slower' failed: Timeout: no answer within"):
        await context().call(slower)


async def test_an_unknown_outcome_of_a_manual_tool_is_never_called_failed() -> None:
    @tool(recovery="manual", retry=QUICK)
    async def valve(number: int) -> None:
        ran.append(number)
        raise ConnectionError("reset")

    journal = MemoryJournal()
    ctx = context(task=TASK, journal=journal)
    with pytest.raises(Halted) as halted:
        await ctx.call(valve, 1)
    expected = invocation_id(operation_id(TASK, "step", "action"), "valve#1")
    assert halted.value.kind == "Unsettled"
    assert str(halted.value) == (
        f"nobody knows whether tool 'valve' took effect (key 'valve#1', invocation {expected}): "
        "ConnectionError: reset; settle it, then resume the task"
    )
    assert (ran, [entry.kind for entry in journal.entries]) == ([1], ["intent"])


async def test_a_manual_tool_that_left_nothing_behind_has_failed() -> None:
    @tool(recovery="manual", retry=QUICK)
    async def valve() -> None:
        ran.append(1)
        raise ToolError("no power", no_effect=True)

    with pytest.raises(ToolFailed) as failed:
        await context().call(valve)
    assert failed.value.no_effect
    assert len(ran) == 3


class Post:
    """A mail service whose answers get lost, and the tool that uses it."""

    def __init__(self, *answers: Any) -> None:
        self.sent: list[str] = []
        self.asked: list[tuple[Call, str]] = []
        answers_left = list(answers)

        async def was_sent(call: Call, text: str) -> Any:
            self.asked.append((call, text))
            answer = answers_left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        @tool(recovery="check", check=was_sent, retry=QUICK)
        async def send(text: str) -> str:
            self.sent.append(text)
            raise ConnectionError("reset")

        self.send = send


async def test_a_check_that_says_it_happened_gives_the_result() -> None:
    post = Post(Happened("m-1"))
    journal = MemoryJournal()
    assert await context(journal=journal).call(post.send, "hello") == "m-1"
    assert (post.sent, [text for _, text in post.asked]) == (["hello"], ["hello"])
    assert [entry.kind for entry in journal.entries] == ["intent", "result", "checkpoint"]


async def test_a_check_that_says_it_did_not_happen_lets_it_run_again_and_fail_at_last() -> None:
    post = Post(DID_NOT_HAPPEN, DID_NOT_HAPPEN, DID_NOT_HAPPEN)
    with pytest.raises(ToolFailed) as failed:
        await context().call(post.send, "hello")
    assert failed.value.no_effect
    assert (len(post.sent), len(post.asked)) == (3, 3)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([CANNOT_TELL], "its check cannot tell"),
        ([None], "its check answered NoneType, not Happened(result), DID_NOT_HAPPEN or CANNOT"),
        ([Happened(7)], "it happened, but tool 'send' returned something that cannot be kept"),
        ([OSError("down")] * 5, "its check failed: OSError: down"),
    ],
)
async def test_a_check_that_cannot_tell_leaves_it_to_a_person(
    answers: list[Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Attempts(initial_interval=0.0, maximum_attempts=5)
    monkeypatch.setattr("headway.agents.trial.CHECK_ATTEMPTS", patient)
    post = Post(*answers)
    with pytest.raises(Halted, match=re.escape(words)) as halted:
        await context().call(post.send, "hello")
    assert halted.value.kind == "Unsettled"
    assert len(post.asked) == len(answers)


async def test_a_check_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Attempts(initial_interval=0.0, maximum_attempts=5)
    monkeypatch.setattr("headway.agents.trial.CHECK_ATTEMPTS", patient)
    post = Post(OSError("down"), Happened("m-1"))
    assert await context().call(post.send, "hello") == "m-1"


async def left_open(function: Any, *args: Any, **options: Any) -> MemoryJournal:
    """The journal of a worker that died between a call's intent and its result."""
    journal = MemoryJournal()
    ctx = context(task=TASK, journal=journal)
    await asyncio.wait({asyncio.create_task(ctx.call(function, *args, **options))})
    journal.cut(1)
    ran.clear()
    return journal


async def test_open_calls_are_settled_before_the_handler_goes_on() -> None:
    """Those that may be run again are voided: the journal says why there are two intents."""
    journal = await left_open(lookup, "o-1")
    ctx = await opened(resumed(journal))
    assert ran == []
    assert [entry.kind for entry in journal.entries] == ["intent", "void"]
    assert journal.entries[1].data == "running it again does no harm"
    assert await ctx.call(lookup, "o-1") == Order("o-1", 3)
    assert [entry.key for entry in journal.of_kind("intent")] == ["lookup#1", "lookup#1"]


async def test_the_check_of_an_open_call_is_asked_with_its_arguments() -> None:
    post = Post(CANNOT_TELL, Happened("m-1"))
    journal = await left_open(post.send, "hello")
    post.asked.clear()
    ctx = await opened(context(task=TASK, journal=journal, tools=[post.send]))
    [(call, text)] = post.asked
    assert (text, call.key, call.attempt) == ("hello", "send#1", 1)
    post.sent.clear()
    assert await ctx.call(post.send, "hello") == "m-1"
    assert post.sent == []


async def test_an_open_call_that_did_not_happen_is_run() -> None:
    post = Post(CANNOT_TELL, DID_NOT_HAPPEN, Happened("m-2"))
    journal = await left_open(post.send, "hello")
    ctx = await opened(context(task=TASK, journal=journal, tools=[post.send]))
    assert journal.of_kind("void")[0].data == "its check says that it did not happen"
    post.sent.clear()
    assert await ctx.call(post.send, "hello") == "m-2"
    assert post.sent == ["hello"]


async def test_open_calls_that_only_a_person_can_settle_are_named_when_all_others_are() -> None:
    @tool(recovery="manual")
    async def valve(number: int) -> str:
        return "open"

    journal = await left_open(valve, 1)
    other = await left_open(valve, 2, key="second")
    third = await left_open(lookup, "o-1")
    for number, entry in enumerate([other.entries[0], third.entries[0]], 2):
        journal.entries.append(entry.model_copy(update={"seq": number}))
    with pytest.raises(Halted) as halted:
        await opened(context(task=TASK, journal=journal, tools=[valve, lookup]))
    assert halted.value.kind == "Unsettled"
    assert "key 'valve#1'" in str(halted.value)
    assert "key 'second'" in str(halted.value)
    assert "its worker was lost during the call; settle it, then resume" in str(halted.value)
    assert [(entry.kind, entry.key) for entry in journal.entries[3:]] == [("void", "lookup#1")]


async def test_an_open_call_of_a_tool_that_is_no_longer_declared_is_left_to_a_person() -> None:
    journal = await left_open(lookup, "o-1")
    with pytest.raises(Halted, match="its action does not declare it any more"):
        await opened(context(task=TASK, journal=journal, tools=[pay]))


async def test_what_a_person_settled_is_taken_as_it_was_said() -> None:
    @tool(recovery="manual")
    async def valve(number: int) -> str:
        ran.append(number)
        return "opened by itself"

    journal = await left_open(valve, 1)
    said = {"kind": "result", "data": "opened by hand", "by": "eve", "datadigest": ""}
    journal.entries.append(journal.entries[0].model_copy(update={**said, "seq": 2}))
    ctx = await opened(context(task=TASK, journal=journal, tools=[valve]))
    assert await ctx.call(valve, 1) == "opened by hand"
    assert ran == []


async def test_a_failure_at_the_journals_end_is_tried_again_by_a_later_attempt() -> None:
    @tool(recovery="natural", retry=Attempts(maximum_attempts=1))
    async def flaky() -> str:
        ran.append(1)
        if len(ran) < 2:
            raise ValueError("not yet")
        return "now"

    journal = MemoryJournal()
    with pytest.raises(ToolFailed):
        await context(task=TASK, journal=journal, tools=[flaky]).call(flaky)
    ctx = await opened(context(task=TASK, journal=journal, tools=[flaky], attempt=2))
    assert await ctx.call(flaky) == "now"


async def test_a_failure_that_something_was_built_on_stays() -> None:
    @tool(recovery="natural", retry=Attempts(maximum_attempts=1))
    async def flaky() -> str:
        ran.append("flaky")
        raise ValueError("never")

    async def handler(ctx: Context) -> Order:
        try:
            await ctx.call(flaky)
        except ToolFailed:
            return await ctx.call(lookup, "instead")
        raise AssertionError

    journal = MemoryJournal()
    tools = [flaky, lookup]
    await handler(context(task=TASK, journal=journal, tools=tools))
    again = await opened(context(task=TASK, journal=journal, tools=tools, attempt=2))
    assert await handler(again) == Order("instead", 7)
    assert ran == ["flaky", ("lookup", "instead")]


async def test_a_failure_that_will_not_get_better_stays() -> None:
    @tool(recovery="natural")
    async def refuse() -> None:
        ran.append(1)
        raise ToolError("never", retryable=False)

    journal = MemoryJournal()
    for attempt in (1, 2):
        with pytest.raises(ToolFailed) as failed:
            await context(task=TASK, journal=journal, attempt=attempt).call(refuse)
        assert failed.value.retryable is False
    assert ran == [1]


async def test_work_that_is_done_again_asks_anew_only_what_is_new() -> None:
    """After a rejected output: the same questions have their answers, a new one is asked."""

    async def handler(ctx: Context) -> list[Any]:
        order = await ctx.call(lookup, "o-1")
        thought = await ctx.call(think, f"about {ctx.rejection or 'it'}")
        return [order.total, thought, await ctx.call(pay, order.total)]

    journal = MemoryJournal()
    assert await handler(resumed(journal)) == [3, "about it!", "paid 3"]
    for attempt in (2, 3):
        ctx = await opened(resumed(journal, attempt=attempt, rejection="tone"))
        assert await handler(ctx) == [3, "about tone!", "paid 3"]
    assert [each[:2] for each in ran] == [
        ("lookup", "o-1"),
        ("think", "about it"),
        ("pay", 3),
        ("think", "about tone"),
    ]
    assert [entry.key for entry in journal.of_kind("intent")][-1] == "think#2"


async def test_a_halt_is_not_overcome_by_catching_it() -> None:
    @tool(recovery="manual")
    async def valve() -> None:
        raise ConnectionError("reset")

    ctx = context()
    with pytest.raises(Halted):
        await ctx.call(valve)
    for again in (ctx.call(lookup, "o"), ctx.checkpoint(1), ctx.note("x")):
        with pytest.raises(Halted, match="nobody knows whether tool 'valve' took effect"):
            await again
    assert ran == []
    assert ctx.calls is not None
    assert isinstance(ctx.calls.stopped, Halted)


async def test_others_in_flight_still_write_their_results_after_a_halt() -> None:
    release = asyncio.Event()

    @tool(recovery="manual")
    async def valve() -> None:
        raise ConnectionError("reset")

    @tool(recovery="dedupe_key")
    async def slow(call: Call) -> str:
        await release.wait()
        return "done"

    journal = MemoryJournal()
    ctx = context(journal=journal)
    other = asyncio.create_task(ctx.call(slow))
    with pytest.raises(Halted):
        await ctx.call(valve)
    release.set()
    assert await other == "done"
    assert [entry.data for entry in journal.of_kind("result")] == ["done"]


async def test_a_call_that_is_cancelled_before_it_begins_is_void() -> None:
    journal = MemoryJournal()
    append, hold = journal.append, asyncio.Event()

    async def held(*args: Any) -> Any:
        await hold.wait()
        return await append(*args)

    journal.append = held  # type: ignore[method-assign]
    ctx = context(journal=journal)
    calling = asyncio.create_task(ctx.call(pay, 1))
    await asyncio.sleep(0.01)
    calling.cancel()
    await asyncio.wait({calling})
    hold.set()
    await ctx.note("later")
    assert [entry.kind for entry in journal.entries] == ["intent", "void", "note"]
    assert journal.entries[1].data == "it was cancelled before it began"
    assert ran == []


async def test_a_process_that_was_frozen_asks_once_more_before_it_acts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headway.agents.trial.CONFIRM_AFTER_S", 1e-6)
    journal = MemoryJournal()
    await context(journal=journal).call(lookup, "o")
    causes = [(entry.kind, (entry.data or {}).get("cause")) for entry in journal.entries]
    assert causes[:2] == [("intent", None), ("checkpoint", "sure")]


async def test_a_process_that_was_frozen_when_it_got_leave_asks_once_more_before_it_acts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[int] = []

    @tool(recovery="dedupe_key", sensitive=True)
    async def wire_money(call: Call) -> None:
        ran.append(1)

    async def late(_tool: object, _call: Call) -> str:
        monkeypatch.setattr("headway.agents.trial.CONFIRM_AFTER_S", 1e-6)
        journal.lost = True
        return TOKEN

    journal = Taken()
    monkeypatch.setattr("headway.agents.testing._leave", late)
    with pytest.raises(Superseded, match="another worker has it"):
        await context(journal=journal).call(wire_money)
    assert ran == []


async def test_servers_that_are_slow_hold_nobody_up_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headway.agents.trial.CONFIRM_AFTER_S", 0.01)
    asked: list[int] = []

    async def slow() -> None:
        asked.append(1)
        await asyncio.sleep(0.03)  # the very thing under test: longer than it may take at first

    await still_ours(slow, LONG_AGO)
    assert 2 <= len(asked) <= 3


async def test_states_come_back_and_positions_are_kept_by_themselves() -> None:
    journal = MemoryJournal()
    ctx = await opened(resumed(journal))
    assert ctx.restore() is None
    await ctx.checkpoint({"step": 1, "order": Order("o", 1)})
    assert ctx.restore() == {"step": 1, "order": {"name": "o", "total": 1}}
    await ctx.call(lookup, "o-1")
    again = await opened(resumed(journal))
    assert again.restore() == {"step": 1, "order": {"name": "o", "total": 1}}
    given, automatic = journal.of_kind("checkpoint")
    assert (given.data["cause"], given.data["after"]) == ("agent", 0)
    assert (automatic.data["cause"], automatic.data["state_at"]) == ("result", 1)
    assert "state" not in automatic.data
    await again.checkpoint({"step": 2})
    assert (await opened(resumed(journal))).restore() == {"step": 2}


async def counting(ctx: Context) -> list[str]:
    """Takes up its state, and makes only the calls that are left."""
    state = ctx.restore() or {"said": []}
    while len(state["said"]) < 3:
        first = await ctx.call(think, f"{len(state['said'])}")
        second = await ctx.call(think, first)
        state["said"].append(second)
        await ctx.checkpoint(state)
    return list(state["said"])


async def test_a_handler_that_takes_up_its_state_goes_on_with_the_calls_after_it() -> None:
    journal = MemoryJournal()
    whole = await counting(resumed(journal))
    assert whole == ["0!!", "1!!", "2!!"]
    for cut in range(len(journal.entries) + 1):
        again = MemoryJournal()
        again.entries = list(journal.entries)
        again.cut(cut)
        known = len(again.of_kind("result"))
        ran.clear()
        assert await counting(await opened(resumed(again))) == whole
        assert len(ran) == 6 - known, f"cut after {cut}"
        keys = [entry.key for entry in again.of_kind("result")]
        assert keys == [f"think#{number}" for number in range(1, 7)]


async def test_a_note_is_not_repeated_when_its_handler_runs_again() -> None:
    journal = MemoryJournal()
    for _ in range(3):
        ctx = await opened(resumed(journal))
        await ctx.note("one")
        await ctx.note("two")
    assert [entry.data for entry in journal.of_kind("note")] == ["one", "two"]


async def test_progress_is_kept_before_a_long_call_begins() -> None:
    @tool(recovery="natural", long=True)
    async def train() -> None:
        ran.append([(entry.kind, (entry.data or {}).get("cause")) for entry in journal.entries])

    journal = MemoryJournal()
    await context(journal=journal).call(train)
    assert ran == [[("intent", None), ("checkpoint", "long")]]


async def test_a_journal_that_contradicts_its_checkpoints_is_reported_and_not_used() -> None:
    journal = MemoryJournal()
    await errand(resumed(journal))

    lost = MemoryJournal()
    lost.entries = [entry for entry in journal.entries if entry.seq != 5]
    words = "the journal's entry 5 is missing: entry 6 follows entry 4"
    with pytest.raises(JournalMismatch, match=words):
        await opened(resumed(lost))
    assert (lost.entries[-1].kind, lost.entries[-1].data) == ("note", words)

    changed = MemoryJournal()
    changed.entries = list(journal.entries)
    changed.entries[1] = changed.entries[1].model_copy(update={"datadigest": "0" * 64})
    words = "the checkpoint in entry 3 remembers other results than the journal has up to entry 2"
    with pytest.raises(JournalMismatch, match=words):
        await opened(resumed(changed))

    ahead = MemoryJournal()
    first, _, third = journal.entries[:3]
    ahead.entries = [first, third.model_copy(update={"seq": 2})]
    words = "the checkpoint in entry 2 was written after entry 2: it is ahead of its journal"
    with pytest.raises(JournalMismatch, match=words):
        await opened(resumed(ahead))


async def test_a_result_that_is_not_what_was_written_is_not_used() -> None:
    journal = MemoryJournal()
    await resumed(journal).call(lookup, "o-1")
    journal.entries[1] = journal.entries[1].model_copy(update={"data": {"name": "x", "total": 9}})
    with pytest.raises(JournalMismatch) as mismatch:
        await (await opened(resumed(journal))).call(lookup, "o-1")
    assert str(mismatch.value) == (
        "the result of call 'lookup#1' in the journal is not what was written: its digest differs"
    )


async def test_large_values_travel_by_reference() -> None:
    @tool(recovery="natural")
    async def echo(text: str) -> str:
        ran.append(len(text))
        return text

    text = "x" * 300_000
    journal = MemoryJournal()
    for _ in range(2):
        ctx = await opened(context(task=TASK, journal=journal, tools=[echo]))
        assert await ctx.call(echo, text) == text
        await ctx.checkpoint({"text": text})
    assert (await opened(context(task=TASK, journal=journal, tools=[echo]))).restore() == {
        "text": text
    }
    assert ran == [300_000]
    intent, result, *_ = journal.entries
    assert intent.dataref
    assert result.dataref
    assert (intent.data, result.data, result.size) == (None, None, 300_002)


async def test_a_result_over_its_limit_is_shortened_for_the_caller_and_kept_whole() -> None:
    @tool(recovery="natural", result_limit=200)
    async def read() -> str:
        ran.append(1)
        return "y" * 5_000

    journal = MemoryJournal()
    first = await context(task=TASK, journal=journal).call(read)
    again = await context(task=TASK, journal=journal).call(read)
    [result] = journal.of_kind("result")
    assert first == again
    assert first.endswith(f"[shortened: 5002 bytes in all, kept as {result.dataref}]")
    assert len(first) < 200
    assert await journal.get(result.dataref, result.datadigest) == b'"' + b"y" * 5_000 + b'"'
    assert ran == [1]


async def test_a_result_that_cannot_be_kept_is_a_failure() -> None:
    @tool(recovery="dedupe_key")
    async def strange(call: Call) -> Any:
        return object()

    with pytest.raises(ToolFailed) as failed:
        await context().call(strange)
    assert (failed.value.kind, failed.value.retryable) == ("InvalidValue", False)


async def test_what_was_used_is_counted_once() -> None:
    journal = MemoryJournal()
    ctx = resumed(journal)
    await ctx.call(think, "a")
    await ctx.call(think, "b")
    assert ctx.usage == Usage(input_tokens=20, output_tokens=10, cost_usd=0.5)
    ctx = await opened(resumed(journal))
    assert ctx.usage.tokens == 30
    await ctx.call(think, "a")
    assert ctx.usage.tokens == 30


async def test_the_journal_keeps_whose_model_was_asked_and_which() -> None:
    @tool(recovery="natural", model=True)
    async def ask() -> Metered[str]:
        return Metered("hm", input_tokens=3, provider="anthropic", model="claude")

    journal = MemoryJournal()
    ctx = context(journal=journal)
    await ctx.call(ask)
    kept = journal.entries[1].usage
    assert kept == Usage(input_tokens=3, provider="anthropic", model="claude")
    assert ctx.usage == Usage(input_tokens=3), "of the whole task no single model is told"


@pytest.mark.parametrize(
    "used",
    [
        {"input_tokens": -1},
        {"model": "m" * 201},
        {"input_tokens": 10**13},
        {"cost_usd": float("nan")},
        {"cost_usd": 1e10},
    ],
)
async def test_a_model_that_says_it_used_what_cannot_be_is_not_called_again(used: Any) -> None:
    """It would be billed again, and what it used never counted."""

    @tool(recovery="natural", model=True, retry=QUICK)
    async def strange() -> Metered[str]:
        ran.append(1)
        return Metered("hm", **used)

    with pytest.raises(ToolFailed, match="what tool 'strange' used: ") as failed:
        await context().call(strange)
    assert (failed.value.kind, failed.value.retryable) == ("InvalidValue", False)
    assert ran == [1]


async def test_more_calls_than_a_journal_takes_at_once_wait_for_their_turn() -> None:
    running: list[int] = []
    most = 0

    @tool(recovery="natural")
    async def busy(number: int) -> int:
        nonlocal most
        running.append(number)
        most = max(most, len(running))
        await asyncio.sleep(0.01)
        running.remove(number)
        return number

    journal = MemoryJournal()
    ctx = context(journal=journal)
    numbers = range(UNDER_WAY_MAX + 50)
    assert await asyncio.gather(*(ctx.call(busy, n) for n in numbers)) == list(numbers)
    assert most == UNDER_WAY_MAX
    assert [entry.data["number"] for entry in journal.of_kind("intent")] == list(numbers)


async def test_one_entry_that_is_refused_takes_no_others_with_it() -> None:
    class Picky(MemoryJournal):
        async def append(self, epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
            await asyncio.sleep(0)  # until the others are there
            if any(entry.key == "odd" for entry in entries):
                raise InvalidInput("entries.1.key: odd")
            return await super().append(epoch, seq, entries)

    ctx = context(journal=Picky())
    calls = [ctx.call(pay, 1), ctx.call(pay, 2, key="odd"), ctx.call(pay, 3)]
    first, refused, last = await asyncio.gather(*calls, return_exceptions=True)
    assert (first, last) == ("paid 1", "paid 3")
    assert isinstance(refused, InvalidInput)
    assert [amount for _, amount, _ in ran] == [1, 3]


async def test_notes_are_words_of_a_certain_length() -> None:
    journal = MemoryJournal()
    ctx = context(journal=journal)
    await ctx.note("hello")
    assert [(entry.kind, entry.data) for entry in journal.entries] == [("note", "hello")]
    with pytest.raises(InvalidInput, match="a note has at most 10000 characters, not 10001"):
        await ctx.note("x" * 10_001)
    with pytest.raises(InvalidInput, match="a note must be Unicode, without half a surrogate pair"):
        await ctx.note("\ud800")


async def test_states_and_arguments_that_are_no_json_are_refused() -> None:
    with pytest.raises(HeadwayError, match="the state cannot be kept as JSON"):
        await context().checkpoint(object())
    with pytest.raises(InvalidInput, match="argument 'order' cannot be written as JSON"):
        await context().call(lookup, object())


async def test_calls_that_a_handler_left_behind_are_waited_for_and_then_none_is_taken() -> None:
    release = asyncio.Event()

    @tool(recovery="natural")
    async def slow() -> None:
        await release.wait()

    journal = MemoryJournal()
    ctx = context(journal=journal)
    assert ctx.calls is not None
    left = asyncio.create_task(ctx.call(slow))
    await asyncio.sleep(0)
    finishing = asyncio.create_task(ctx.calls.finished())
    await asyncio.sleep(0.01)
    assert not finishing.done()
    release.set()
    await finishing
    await left
    with pytest.raises(HeadwayError, match="the attempt is over"):
        await ctx.call(slow)


async def test_an_action_may_hand_off() -> None:
    async def route(ctx: Context) -> HandOff[Order]:
        return HandOff(
            Order("o", 1),
            Next("billing.refund", compensate="billing.undo", input={"order": Order("o", 1)}),
            Next("mail.send", name="tell", read_only=True),
        )

    assert await run(route) == {"name": "o", "total": 1}
    steps = [each.to_step() for each in (await route(context())).steps]
    assert steps == [
        NextStep("billing.refund", "", "billing.undo", False, {"order": {"name": "o", "total": 1}}),
        NextStep("mail.send", "tell", None, True, None),
    ]
