"""The agents of a run. Their handlers do what a handler should, and fail where chance says so.

Always holds: they are honest. What says that it left no effect left none; a compensation that says
that it found nothing has barred the action for good.
"""

from __future__ import annotations

import asyncio
from typing import Any

from headway.agents import (
    EMPTY,
    Agent,
    Context,
    HandOff,
    Next,
    Reject,
    Retry,
    Worker,
)
from simulation.downstream import Downstream
from simulation.errands import Broken, errands
from simulation.process import Process

TALLIES = "tallies"
HANG_S = 10_000.0
BEAT_S = 0.7
WORK_MAX_S = 1.2
STEPS_AROUND_WORK_MAX = 40


def agent_of(name: str, process: Process, downstream: Downstream) -> Agent:
    """One agent, as it is in one life of a process."""
    agent = Agent(name)
    chance = process.world.chance

    async def misbehave(ctx: Context, *, may_reject: bool) -> None:
        downstream.on_begin(ctx.task, ctx.step, ctx.phase, ctx.attempt, ctx.epoch)
        place = f"{name}.{ctx.step}"
        process.freeze_soon("freeze_at_effect", STEPS_AROUND_WORK_MAX)
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

    errands(agent, process, downstream)
    return agent


async def work(process: Process, downstream: Downstream, names: tuple[str, ...]) -> None:
    """The main of a process that works for these agents, on one connection."""
    connection = await process.connect(name=process.name, wait=True)
    stop = process.stop
    async with connection, asyncio.TaskGroup() as group:
        for name in names:
            worker = Worker(connection, agent_of(name, process, downstream), concurrency=8)
            group.create_task(worker.run(stop))
