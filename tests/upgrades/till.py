"""A teller whose payments a person must approve."""

from __future__ import annotations

from typing import Any

from headway.agents import Agent, Context, tool
from headway.sagas import Retry, Saga

teller = Agent("teller")


@tool(recovery="natural", requires_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


@teller.action("pay", tools=[pay])
async def pay_out(ctx: Context, order: Any) -> str:
    return await ctx.call(pay, order["amount"])


@teller.compensation("take-back")
async def take_back(ctx: Context, order: Any, result: Any) -> None:
    """What was paid comes back."""


def till() -> Saga:
    quick = Retry(initial_interval=0.05, maximum_interval=0.1, maximum_attempts=5)
    return Saga("till").step("pay", "teller.pay", compensate="teller.take-back", retry=quick)
