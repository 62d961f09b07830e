"""The drill's agent and saga: three steps with compensations, which do as their order says.

An order is `{"log": "/…/downstream.sqlite", "charge": "linger=20"}`: where the downstream is, and
what a step (or `undo-` and its name) does besides its work.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from headway.agents import DID_NOT_HAPPEN, Agent, Call, Context, Happened, Reject, tool
from headway.drills.downstream import Downstream
from headway.sagas import Retry, Saga

AGENT = "headway-drill"
SAGA = "headway-drill"
STEPS = ("reserve", "charge", "ship")
ATTEMPTS = 5
CRASHING = "crashing"

drill = Agent(AGENT)


class Ordered(RuntimeError):
    """A failure that the order asked for."""


@lru_cache(maxsize=4)
def _downstream(path: str) -> Downstream:
    return Downstream(Path(path))


async def _was_paid(call: Call, log: str, linger_s: float) -> Any:  # noqa: ARG001 - as `pay`
    return Happened(True) if _downstream(log).paid(call.id) else DID_NOT_HAPPEN


@tool(recovery="check", check=_was_paid)
async def pay(call: Call, log: str, linger_s: float) -> bool:
    """Pays, and then takes its time to say so."""
    _downstream(log).pay(call.id, call.task)
    await asyncio.sleep(linger_s)
    return True


async def _do(ctx: Context, order: dict[str, Any]) -> dict[str, str]:
    downstream = _downstream(order["log"])
    count = downstream.called(ctx)
    told = _told(order.get(ctx.step, ""))
    await _follow(ctx, order, told, count)
    if ctx.step == "charge":
        await ctx.call(pay, order["log"], told.get("linger-paid", 0.0))
    if not downstream.do(ctx):
        raise Reject("this step was undone before", kind="Undone")
    return {"step": ctx.step}


async def _undo(ctx: Context, order: dict[str, Any]) -> None:
    downstream = _downstream(order["log"])
    count = downstream.called(ctx)
    await _follow(ctx, order, _told(order.get(f"undo-{ctx.step}", "")), count)
    downstream.undo(ctx)


def _told(words: str) -> dict[str, float]:
    """`linger=2 reject` as {"linger": 2.0, "reject": 0.0}."""
    pairs = (word.partition("=") for word in words.split())
    return {name: float(value or 0) for name, _, value in pairs}


async def _follow(ctx: Context, order: dict[str, Any], told: dict[str, float], count: int) -> None:
    """Do what the order tells the `count`th call of an operation."""
    if "linger" in told and count == 1:
        with suppress(TimeoutError):
            await asyncio.wait_for(ctx.wait_cancelled(), told["linger"])
            raise Reject("nobody wants this any more", kind="Cancelled")
    if "crash" in told and _downstream(order["log"]).wished(CRASHING):
        os.kill(os.getpid(), signal.SIGKILL)
    if count <= told.get("fail", 0):
        raise Ordered("as ordered")
    if "reject" in told:
        raise Reject("as ordered", kind="Ordered")


for _step in STEPS:
    drill.action(_step, tools=[pay] if _step == "charge" else [])(_do)
    drill.compensation(f"undo-{_step}")(_undo)


def saga() -> Saga:
    """Reserve, charge, ship; each is undone by its compensation."""
    retry = Retry(initial_interval=0.05, maximum_interval=0.2, maximum_attempts=ATTEMPTS)
    made = Saga(SAGA)
    before: tuple[str, ...] = ()
    for step in STEPS:
        made.step(
            step,
            f"{AGENT}.{step}",
            compensate=f"{AGENT}.undo-{step}",
            after=before,
            retry=retry,
            compensation_retry=retry,
        )
        before = (step,)
    return made
