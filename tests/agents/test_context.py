"""What handlers see, and the offline helpers that make it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from headway.agents.agent import Agent
from headway.agents.binding import EMPTY, Empty, InvalidResult
from headway.agents.context import Context
from headway.agents.errors import DeclarationError, InvalidInput, Reject, Unavailable
from headway.agents.identity import operation_id
from headway.agents.testing import context, run
from headway.agents.tools import tool

TASK = UUID("6c0a6799-fe64-5d4a-ae62-3f9d806ea12c")


def test_operation_ids_tell_phases_apart_and_attempts_not() -> None:
    first = context(task=TASK, step="pay", attempt=1)
    second = context(task=TASK, step="pay", attempt=2)
    undo = context(task=TASK, step="pay", phase="compensation")
    assert first.operation_id == second.operation_id == operation_id(TASK, "pay", "action")
    assert undo.operation_id == operation_id(TASK, "pay", "compensation")
    assert undo.action_operation_id == first.operation_id


def test_a_deadline_is_a_time_or_none() -> None:
    assert context().deadline is None
    assert context(deadline_at=1.5).deadline == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)


def test_contexts_do_not_share_their_fields() -> None:
    assert context().task != context().task
    one, two = context(), context()
    one.cancellation.set()
    assert one.cancelled
    assert not two.cancelled


async def test_a_handler_can_wait_for_being_cancelled() -> None:
    ctx = context()
    waiting = asyncio.create_task(ctx.wait_cancelled())
    ctx.cancellation.set()
    await asyncio.wait_for(waiting, 1)


async def test_heartbeats_reach_whoever_made_the_context() -> None:
    beats: list[Any] = []
    ctx = context(beat=beats.append)
    await ctx.heartbeat()
    await ctx.heartbeat({"page": 3})
    assert beats == [None, {"page": 3}]
    await context().heartbeat()


def test_log_records_name_the_attempt_and_no_payload(caplog: pytest.LogCaptureFixture) -> None:
    ctx = context(task=TASK, step="pay", agent="payments", input={"card": "secret"})
    with caplog.at_level(logging.INFO):
        ctx.logger.info("charging")
    record: Any = caplog.records[0]
    assert (record.name, record.task, record.step) == ("headway.agents.payments", str(TASK), "pay")
    assert "secret" not in repr(ctx)


async def test_run_calls_a_handler_as_a_worker_would() -> None:
    agent = Agent("payments")

    @agent.action("double")
    async def double(ctx: Context, number: int) -> dict[str, int]:
        return {"twice": number * 2, "attempt": ctx.attempt}

    @agent.compensation("undo")
    def undo(ctx: Context, number: int, result: dict[str, int] | None) -> Empty | None:
        return EMPTY if result is None else None

    assert await run(double, 2) == {"twice": 4, "attempt": 1}
    assert await run(double, 2, ctx=context(attempt=3)) == {"twice": 4, "attempt": 3}
    assert await run(agent.handlers["undo"], 2, result={"twice": 4}) is None
    assert await run(undo, 2) is EMPTY
    with pytest.raises(InvalidInput, match="input: "):
        await run(double, "two")


async def test_run_raises_what_a_worker_would_report() -> None:
    async def refuse(ctx: Context) -> None:
        raise Reject("no card", kind="CardDeclined")

    async def strange(ctx: Context) -> Any:
        return object()

    with pytest.raises(Reject) as rejected:
        await run(refuse)
    assert rejected.value.kind == "CardDeclined"
    with pytest.raises(InvalidResult):
        await run(strange)


async def test_run_gives_a_handler_only_the_tools_that_it_declares() -> None:
    agent = Agent("payments")

    @tool(recovery="natural")
    async def look(number: int) -> int:
        return number + 1

    @agent.action("plain")
    async def plain(ctx: Context) -> int:
        return await ctx.call(look, 1)

    @agent.action("other", tools=[])
    async def other(ctx: Context) -> int:
        return await ctx.call(look, 1)

    @agent.action("looking", tools=[look])
    async def looking(ctx: Context) -> int:
        return await ctx.call(look, 1)

    assert await run(agent.handlers["looking"]) == 2
    with pytest.raises(DeclarationError, match="the action has no journal"):
        await run(agent.handlers["plain"])
    with pytest.raises(DeclarationError, match="tool 'look' is not one of this action's"):
        await run(agent.handlers["other"])
    with pytest.raises(Unavailable, match="no connection, so no documents"):
        _ = context().documents
