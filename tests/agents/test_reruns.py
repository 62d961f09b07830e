"""Handlers over the journals of a task's record: what differs is told, and no tool is run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from headway.agents import Agent, Context, tool
from headway.agents.export_views import JournalRecord, TaskRecord
from headway.agents.identity import new_task_id
from headway.agents.reruns import rerun
from headway.agents.testing import MemoryJournal, context, reproduces, run
from headway.agents.views import HistoryEntry

RAN: list[str] = []
TASK = new_task_id()
NOW = datetime(2026, 11, 30, tzinfo=UTC)

desk = Agent("desk")


@tool(recovery="natural")
async def look(order: str) -> int:
    RAN.append("look")
    return len(order)


@tool(recovery="manual")
async def pay(cents: int) -> str:
    RAN.append("pay")
    return f"paid {cents}"


@desk.action("refund", tools=[look, pay])
async def refund(ctx: Context, order: str) -> str:
    cents = await ctx.call(look, order)
    await ctx.checkpoint({"cents": cents})
    await ctx.note("found it")
    return await ctx.call(pay, cents)


async def recorded(*, entries: int | None = None, completed: bool = True) -> TaskRecord:
    """What a refund of the order "o-17" leaves, cut after so many of its journal's entries."""
    journal = MemoryJournal()
    ctx = context(task=TASK, journal=journal, tools=[look, pay])
    result = await run(refund, "o-17", ctx=ctx)
    if entries is not None:
        journal.cut(entries)
    RAN.clear()
    events: list[tuple[str, dict[str, Any]]] = [("TaskSubmitted", {})]
    if completed:
        events.append(("StepCompleted", {"step": "refund", "attempt": 1, "result": result}))
    return TaskRecord(
        exported_at=NOW,
        headway="0",
        task=TASK,
        saga="refunds",
        status="succeeded",
        version=len(events),
        priority=4,
        attributes={},
        definitions=[{"steps": [{"name": "refund", "action": "desk.refund", "after": []}]}],
        input="o-17",
        history=[
            HistoryEntry(version=number, type=kind, at=NOW, data=data)
            for number, (kind, data) in enumerate(events, 1)
        ],
        journals=[JournalRecord(step="refund", phase="action", entries=journal.entries)],
    )


async def test_a_handler_gets_the_recorded_results_and_no_tool_is_run() -> None:
    [found] = await rerun(await recorded(), desk)
    assert (found.handler, found.calls, found.difference) == ("desk.refund", 2, "")
    assert RAN == []


async def test_a_record_is_a_regression_test_of_its_handlers(tmp_path: Path) -> None:
    file = tmp_path / "refund.json"
    record = await recorded()
    file.write_text(record.model_dump_json())
    await reproduces(file, desk)
    changed = Agent("desk")

    @changed.action("refund", tools=[look, pay])
    async def refund(ctx: Context, order: str) -> str:
        return await ctx.call(pay, 5)

    with pytest.raises(AssertionError) as caught:
        await reproduces(file, changed)
    assert str(caught.value).startswith(
        "desk.refund (action of step 'refund'): call 1 is of tool 'pay' with arguments "
    )
    with pytest.raises(AssertionError, match="has no journal of agent 'other'"):
        await reproduces(record, Agent("other"))
    assert RAN == []


async def test_where_the_record_ends_in_the_middle_the_handler_is_right_until_there() -> None:
    for entries in range(7):
        [found] = await rerun(await recorded(entries=entries, completed=False), desk)
        assert found.difference == "", entries
    assert RAN == []


async def test_what_a_completed_step_does_beyond_its_journal_is_a_difference() -> None:
    [found] = await rerun(await recorded(entries=3), desk)
    assert found.difference == (
        "it calls tool 'pay' with {\"cents\":4} (key 'pay#1'), which the journal does not have"
    )


async def test_a_handler_that_is_gone_or_has_no_journal_any_more_is_told() -> None:
    [gone] = await rerun(await recorded(), Agent("desk"))
    assert gone.difference == "there is no handler 'refund' now"
    bare = Agent("desk")

    @bare.action("refund")
    async def refund(ctx: Context, order: str) -> str:
        RAN.append("the handler")
        return ""

    [skipped] = await rerun(await recorded(), bare)
    assert skipped.difference == ""
    assert skipped.skipped == (
        "it declares no tools any more, so it would do its work: it was not run"
    )
    assert RAN == []


async def test_a_handler_that_catches_what_stops_it_is_told_all_the_same() -> None:
    stubborn = Agent("desk")

    @stubborn.action("refund", tools=[look, pay])
    async def refund(ctx: Context, order: str) -> str:
        try:
            return await ctx.call(pay, 1)
        except Exception:
            return "paid 4"

    [found] = await rerun(await recorded(), stubborn)
    assert found.difference.startswith("call 1 is of tool 'pay'")
