"""The agents of a run. Their handlers do what a handler should, and fail where chance says so.

Always holds: they are honest. What says that it left no effect left none; a compensation that says
that it found nothing has barred the action for good.
"""

from __future__ import annotations

import asyncio
from typing import Any

from headway.agents import (
    DID_NOT_HAPPEN,
    EMPTY,
    Agent,
    Attempts,
    Call,
    Context,
    HandOff,
    Happened,
    Next,
    Reject,
    Retry,
    ToolError,
    Worker,
    tool,
)
from simulation.downstream import Downstream
from simulation.process import Process

TALLIES = "tallies"
HANG_S = 10_000.0
BEAT_S = 0.7
WORK_MAX_S = 1.2


class Broken(Exception):
    """A handler's fault."""


def agent_of(name: str, process: Process, downstream: Downstream) -> Agent:
    """One agent, as it is in one life of a process."""
    agent = Agent(name)
    chance = process.world.chance

    async def misbehave(ctx: Context, *, may_reject: bool) -> None:
        downstream.on_begin(ctx.task, ctx.step, ctx.phase, ctx.attempt, ctx.epoch)
        place = f"{name}.{ctx.step}"
        await asyncio.sleep(WORK_MAX_S * process.rng.random() ** 2)
        if chance.hit("handler_fails", place):
            raise Broken("before its effect")
        if may_reject and chance.hit("handler_rejects", place):
            raise Reject("no", kind="Drawn")
        if chance.hit("handler_retries", place):
            raise Retry(after=0.5)
        if chance.hit("handler_hangs", place):
            await asyncio.sleep(HANG_S)
        long = chance.hit("handler_slow", place)
        if long is not None:
            for _ in range(int(20 * long.random())):
                ctx.beat({"at": "work"})
                await asyncio.sleep(BEAT_S)

    @agent.action("act")
    async def act(ctx: Context, order: Any) -> Any:
        await misbehave(ctx, may_reject=True)
        await downstream.do(process, ctx.operation_id, ctx.task, ctx.step)
        if chance.hit("handler_hangs", f"{name}.{ctx.step}.done"):
            await asyncio.sleep(HANG_S)
        if chance.hit("handler_answer_lost", f"{name}.{ctx.step}"):
            raise Broken("after its effect")
        return {"step": ctx.step}

    @agent.compensation("undo")
    async def undo(ctx: Context, order: Any, result: Any) -> Any:
        if chance.hit("compensation_fails", f"{name}.{ctx.step}"):
            raise Broken("in a compensation")
        await misbehave(ctx, may_reject=False)
        found = await downstream.undo(process, ctx.action_operation_id, ctx.task, ctx.step)
        return None if found else EMPTY

    @agent.action("tally")
    async def tally(ctx: Context, order: Any) -> Any:
        await misbehave(ctx, may_reject=False)
        mine = str(ctx.operation_id)

        def added(body: Any) -> list[str]:
            return [*(body or []), mine]

        await ctx.documents.update(TALLIES, "all", added, operation=ctx.operation_id)
        await downstream.do(process, ctx.operation_id, ctx.task, ctx.step)
        return {"step": ctx.step}

    @agent.action("lead")
    async def lead(ctx: Context, order: Any) -> Any:
        await misbehave(ctx, may_reject=True)
        await downstream.do(process, ctx.operation_id, ctx.task, ctx.step)
        follow = [Next(f"{name}.act", name=f"n{n}", compensate=f"{name}.undo") for n in range(2)]
        return HandOff({"step": ctx.step}, *follow)

    _errands(agent, process, downstream)
    return agent


def _errands(agent: Agent, process: Process, downstream: Downstream) -> None:
    """An action that calls tools of each kind of recovery. Its own effect comes last."""
    chance = process.world.chance

    @tool(recovery="natural")
    async def look(number: int) -> int:
        await asyncio.sleep(0.001)
        return number + 1

    @tool(recovery="dedupe_key", sensitive=True)
    async def stamp(call: Call, number: int) -> int:
        await downstream.once(process, f"stamp {call.id}")
        if chance.hit("handler_fails", f"{agent.name}.stamp"):
            raise ToolError("after its effect", retryable=True)
        return number

    async def was_sent(call: Call, text: str) -> Any:
        found = await downstream.used(process, f"send {call.id}")
        return Happened(text) if found else DID_NOT_HAPPEN

    @tool(recovery="check", check=was_sent, retry=Attempts(maximum_attempts=3))
    async def send(call: Call, text: str) -> str:
        if chance.hit("handler_fails", f"{agent.name}.send"):
            raise ToolError("before its effect", retryable=True, no_effect=True)
        await downstream.use(process, f"send {call.id}")
        return text

    @agent.action("errand", tools=[look, stamp, send])
    async def errand(ctx: Context, order: Any) -> Any:
        number = await ctx.call(look, 1)
        stamps = await asyncio.gather(ctx.call(stamp, number), ctx.call(stamp, number + 1))
        await ctx.checkpoint({"stamps": stamps})
        sent = await ctx.call(send, f"{stamps}", key="the mail")
        if chance.hit("handler_rejects", f"{agent.name}.errand"):
            raise Broken("after its tools")
        await downstream.do(process, ctx.operation_id, ctx.task, ctx.step)
        return {"sent": sent}


async def work(process: Process, downstream: Downstream, names: tuple[str, ...]) -> None:
    """The main of a process that works for these agents, on one connection."""
    connection = await process.connect(name=process.name, wait=True)
    stop = process.stop
    async with connection, asyncio.TaskGroup() as group:
        for name in names:
            worker = Worker(connection, agent_of(name, process, downstream), concurrency=8)
            group.create_task(worker.run(stop))
