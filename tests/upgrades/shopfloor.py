"""An agent that any version can run: it only does what agents may rely on for ever.

Each effect is a line in the file that SHOPFLOOR_LOG names: task, step, what was done.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from headway.agents import Agent, Context, Reject, tool
from headway.sagas import Retry, Saga

shop = Agent("shop")


def note(ctx: Context, what: str) -> None:
    line = f"{ctx.task} {ctx.step} {what}\n".encode()
    file = os.open(os.environ["SHOPFLOOR_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)


@tool(recovery="natural")
async def price(number: int) -> int:
    return 3 * number


@shop.action("make", tools=[price])
async def make(ctx: Context, order: Any) -> int:
    cost: int = await ctx.call(price, order["number"])
    await asyncio.sleep(0.02)
    if order.get("fails") == ctx.step:
        raise Reject("as ordered")
    note(ctx, "made")
    return cost


@shop.compensation("unmake")
async def unmake(ctx: Context, order: Any, result: Any) -> None:
    note(ctx, "unmade")


def line() -> Saga:
    """Three steps, one after another."""
    saga = Saga("line")
    for name, after in (("cut", ()), ("glue", "cut"), ("paint", "glue")):
        saga.step(
            name,
            "shop.make",
            compensate="shop.unmake",
            after=after,
            retry=Retry(initial_interval=0.05, maximum_interval=0.2),
        )
    return saga
