"""One `headway up` with one agent, started and used as a person would: a shop whose orders fare as
their input says, and whose refunds wait for people in every way there is."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from command_shell import Shell

READY_WITHIN_S = 60.0
POLL_S = 0.05

SHOP = '''
"""A shop whose orders fare as their input says."""

from dataclasses import dataclass
from typing import Literal

from headway.agents import Agent, Context, Metered, Reject, tool
from headway.sagas import Retry, Saga


@dataclass
class Order:
    fate: Literal["fine", "refused", "stuck", "slow"]


shop = Agent("shop")
absent = Agent("absent")


@shop.action("reserve")
async def reserve(ctx: Context, order: Order) -> dict[str, int]:
    return {"reserved": 1}


@shop.compensation("release")
async def release(ctx: Context, order: Order) -> None:
    return None


@shop.action("ship")
async def ship(ctx: Context, order: Order) -> None:
    if order.fate == "refused":
        raise Reject("no carrier goes there")


@shop.action("notify")
async def notify(ctx: Context, order: Order) -> None:
    if order.fate == "stuck":
        raise RuntimeError("the mail server is down")


@dataclass
class Refund:
    amount: int


@tool(recovery="natural", model=True)
async def think(question: str) -> Metered[str]:
    return Metered("a private answer", input_tokens=10, output_tokens=5, cost_usd=0.25)


@tool(recovery="manual")
async def pay(amount: int) -> str:
    raise ConnectionError("the line went dead")


@tool(recovery="natural", requires_approval=True)
async def unlock(amount: int) -> str:
    return "unlocked"


@shop.action("consult", tools=[think, pay, unlock])
async def consult(ctx: Context, refund: Refund) -> str:
    answer = await ctx.call(think, "a private question")
    await ctx.heartbeat({"thought": 1})
    if refund.amount > 1000:
        return await ctx.call(unlock, refund.amount)
    return await ctx.call(pay, refund.amount) if refund.amount > 100 else answer


once = Retry(maximum_attempts=1)
refund = Saga("refund", version=1, input=Refund)
refund.approval("agree", timeout=3600, when="input.amount > 10")
refund.step("consult", "shop.consult", compensate="shop.cease", after="agree", retry=once)
refund.wait("paid", after="consult")
refund.sleep("rest", 0.01, after="paid")
refund.child("tell", "order", input={"fate": "fine"}, after="rest", timeout=60)


@shop.compensation("cease")
async def cease(ctx: Context, refund: Refund) -> None:
    return None


order = Saga("order", version=1, input=Order)
order.step("reserve", "shop.reserve", compensate="shop.release")
order.step("ship", "shop.ship", after="reserve", pivot=True, retry=once)
order.step("notify", "shop.notify", after="ship", retry=once)


def waiting() -> Saga:
    saga = Saga("waiting", version=1)
    return saga.step("wait", "absent.wait", compensate="absent.undo")


changed = Saga("order", version=1).step("look", "shop.reserve", read_only=True)
'''


@contextmanager
def open_shop(folder: Path) -> Iterator[Shell]:
    """A folder with a running `headway up`, the agent `shop`, and its sagas registered."""
    shell = Shell(folder)
    (shell.folder / "shop.py").write_text(SHOP)
    up = shell.start("up", "--json")
    started = [up]
    try:
        assert up.stdout is not None
        assert json.loads(up.stdout.readline())["pid"] == up.pid, "`headway up` did not start"
        started.append(shell.start("agent", "shop:shop"))
        registered = shell.run("saga", "register", "shop:order", "shop:waiting", "shop:refund")
        assert registered.code == 0, registered.err
        _until_present(shell, "shop")
        yield shell
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=READY_WITHIN_S)
    assert [process.returncode for process in started] == [0, 0]


def _until_present(shell: Shell, agent: str) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        listed = shell.run_here("agents", "--json").json["agents"]
        if any(one["agent"] == agent and one["instances"] for one in listed):
            return
        time.sleep(POLL_S)
    raise AssertionError(f"agent {agent} is not there after {READY_WITHIN_S:g} s")
