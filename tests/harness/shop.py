"""An agent that does what its order tells it to, and the saga that asks it.

An order is `{"number": 7, "b": "sleep=0.5 reject"}`: what step `b` does before it takes effect.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from harness.downstream import Downstream
from harness.eventually import eventually
from headway.agents import EMPTY, Agent, Context, Reject
from headway.sagas import Retry, Saga
from opentelemetry import trace

QUICK = Retry(initial_interval=0.05, maximum_interval=0.1, maximum_attempts=3)
UNTIL_S = 60.0  # that a handler waits at most for a file
ONCE = Retry(maximum_attempts=1)


def shop(downstream: Downstream, name: str = "shop") -> Agent:
    """Actions `a`, `b`, `c` and their compensations `undo-a` and so on."""
    agent = Agent(name)

    async def do(ctx: Context, order: dict[str, Any]) -> dict[str, Any]:
        downstream.called(ctx)
        await _carry_out(order.get(ctx.step, ""))
        downstream.do(ctx)
        return {"number": order.get("number")}

    async def undo(ctx: Context, order: dict[str, Any]) -> Any:
        downstream.called(ctx)
        await _carry_out(order.get(f"undo-{ctx.step}", ""))
        return None if downstream.undo(ctx) else EMPTY

    for letter in "abc":
        agent.action(letter)(do)
        agent.compensation(f"undo-{letter}")(undo)
    return agent


async def _carry_out(orders: str) -> None:
    for word in orders.split():
        what, _, value = word.partition("=")
        match what:
            case "sleep":
                await asyncio.sleep(float(value))
            case "until":
                await eventually(Path(value).exists, UNTIL_S)
            case "block":
                time.sleep(float(value))  # noqa: ASYNC251 - the very thing: its loop stands still
            case "reject":
                raise Reject("as ordered", kind="Ordered")
            case "fail":
                raise RuntimeError("as ordered")
            case "trace":
                with trace.get_tracer("shop").start_as_current_span(value):
                    pass
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                raise AssertionError(word)


def linear(name: str = "linear", steps: str = "abc", **policies: Any) -> Saga:
    """Its steps one after the other, each with a compensation, by agent `shop`."""
    saga, before = Saga(name), ()
    for letter in steps:
        policy = {"retry": QUICK, "compensation_retry": QUICK, **policies}
        saga.step(
            letter, f"shop.{letter}", compensate=f"shop.undo-{letter}", after=before, **policy
        )
        before = (letter,)
    return saga
