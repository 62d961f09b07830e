"""What the conformance kit asks of an agent, written with the SDK: see agents/asyncapi.yaml."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal

from headway.agents import EMPTY, Agent, Context, Reject, Retry
from pydantic import BaseModel, ConfigDict

BEAT_S = 0.1


class Number(BaseModel):
    """An integer, and nothing else."""

    model_config = ConfigDict(strict=True, extra="forbid")

    number: int


class Ending(BaseModel):
    """How an action is to end without a result."""

    how: Literal["reject", "retry", "fail"]
    reason: str = ""
    after_ms: int = 0


class Size(BaseModel):
    """The length of a text."""

    bytes: int


class Span(BaseModel):
    """How long to work."""

    ms: int


class Found(BaseModel):
    """What a compensation comes upon."""

    effect: bool


def conforming(agent: Agent) -> Agent:
    """The agent, with the conformance actions."""
    agent.action("conform-echo")(echo)
    agent.action("conform-double")(double)
    agent.action("conform-end")(end)
    agent.action("conform-large")(large)
    agent.action("conform-work")(work)
    agent.compensation("conform-undo")(undo)
    return agent


async def echo(ctx: Context, input: Any) -> dict[str, Any]:
    return {
        "input": input,
        "operation": str(ctx.operation_id),
        "attempt": ctx.attempt,
        "results": ctx.results,
    }


async def double(_ctx: Context, number: Number) -> Number:
    return Number(number=2 * number.number)


async def end(_ctx: Context, ending: Ending) -> None:
    match ending.how:
        case "reject":
            raise Reject(ending.reason)
        case "retry":
            raise Retry(after=ending.after_ms / 1_000)
        case "fail":
            raise RuntimeError(ending.reason)


async def large(_ctx: Context, size: Size) -> dict[str, str]:
    return {"text": "x" * size.bytes}


async def work(ctx: Context, span: Span) -> dict[str, bool]:
    loop = asyncio.get_running_loop()
    until = loop.time() + span.ms / 1_000
    while not ctx.cancelled and (left_s := until - loop.time()) > 0:
        await ctx.heartbeat({"left_ms": round(left_s * 1_000)})
        with suppress(TimeoutError):
            await asyncio.wait_for(ctx.wait_cancelled(), min(BEAT_S, left_s))
    return {"stopped": ctx.cancelled}


async def undo(ctx: Context, found: Found, result: Any) -> Any:
    if ctx.outcome_unknown and not found.effect:
        return EMPTY
    return {
        "result": result,
        "outcome_unknown": ctx.outcome_unknown,
        "operation": str(ctx.operation_id),
        "action_operation": str(ctx.action_operation_id),
    }
