"""An action that calls tools of each kind of recovery, and may die or freeze around each call."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from headway.agents import (
    DID_NOT_HAPPEN,
    Agent,
    Attempts,
    Call,
    Context,
    Happened,
    ToolError,
    tool,
)
from simulation.downstream import Downstream
from simulation.process import Process

STEPS_AROUND_INTENT_MAX = 40
THOUGHT_MAX_S = 0.6

_at: ContextVar[Context] = ContextVar("at")
"""For which attempt a tool is run."""


class Broken(Exception):
    """A handler's fault."""


def errands(agent: Agent, process: Process, downstream: Downstream) -> None:
    """Add the action to an agent. Its own effect comes last."""
    chance = process.world.chance

    @tool(recovery="natural")
    async def look(call: Call, number: int) -> int:
        downstream.run(process, _at.get(), call)
        await asyncio.sleep(0.001)
        return number + 1

    @tool(recovery="dedupe_key", sensitive=True)
    async def stamp(call: Call, number: int) -> int:
        downstream.run(process, _at.get(), call)
        await downstream.use(process, call, number, once=True)
        if chance.hit("handler_fails", f"{agent.name}.stamp"):
            raise ToolError("after its effect", retryable=True)
        return number

    async def was_sent(call: Call, text: str) -> Any:
        found = await downstream.used(process, call)
        return Happened(text) if found else DID_NOT_HAPPEN

    @tool(recovery="check", check=was_sent, retry=Attempts(maximum_attempts=3))
    async def send(call: Call, text: str) -> str:
        downstream.run(process, _at.get(), call)
        if chance.hit("handler_fails", f"{agent.name}.send"):
            raise ToolError("before its effect", retryable=True, no_effect=True)
        await downstream.use(process, call, text)
        return text

    @tool(recovery="manual")
    async def pay(call: Call, amount: int) -> int:
        downstream.run(process, _at.get(), call)
        await downstream.use(process, call, amount)
        return amount

    def pause() -> float:
        """How long the agent thinks; what may befall it then, or before its next call is run."""
        process.die_soon("crash_at_effect", STEPS_AROUND_INTENT_MAX)
        process.freeze_soon("freeze_at_effect", STEPS_AROUND_INTENT_MAX)
        return THOUGHT_MAX_S * process.rng.random() ** 4

    @agent.action("errand", tools=[look, stamp, send, pay])
    async def errand(ctx: Context, order: Any) -> Any:
        _at.set(ctx)
        await asyncio.sleep(pause())
        number = await ctx.call(look, 1)
        pause()
        stamps = await asyncio.gather(ctx.call(stamp, number), ctx.call(stamp, number + 1))
        await ctx.checkpoint({"stamps": stamps})
        pause()
        sent = await ctx.call(send, f"{stamps}", key="the mail")
        await asyncio.sleep(pause())
        paid = await ctx.call(pay, number)
        if chance.hit("handler_rejects", f"{agent.name}.errand"):
            raise Broken("after its tools")
        await downstream.do(process, ctx.operation_id, ctx.task, ctx.step)
        return {"sent": sent, "paid": paid}
