"""The agents under test and the sagas that ask them.

An order is `{"number": 7, "words": {"charge": "hold=0.2 reject"}}`: how the service answers that
step, that tool, or (`undo-charge`) that compensation.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict
from typing import Any

from chaos.downstream import LINE_MAX_BYTES, Request, What
from headway.agents import (
    DID_NOT_HAPPEN,
    EMPTY,
    Agent,
    Attempts,
    Call,
    Context,
    Happened,
    Metered,
    Reject,
    tool,
)
from headway.sagas import Retry, Saga

PORT_VARIABLE = "CHAOS_DOWNSTREAM_PORT"

PATIENT = Retry(initial_interval=0.1, maximum_interval=0.5, maximum_attempts=8)
ENDLESS = Retry(initial_interval=0.1, maximum_interval=0.5, maximum_attempts=0)
TRIES = Attempts(initial_interval=0.1, maximum_interval=0.5, maximum_attempts=5)

Order = dict[str, Any]


async def ask(request: Request) -> dict[str, Any]:
    """What the service answers; ConnectionError when it hangs up."""
    port = int(os.environ[PORT_VARIABLE])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LINE_MAX_BYTES)
    try:
        writer.write(json.dumps(asdict(request)).encode() + b"\n")
        line = await reader.readline()
    finally:
        writer.close()
    if not line:
        raise ConnectionError("the service hung up")
    answer: dict[str, Any] = json.loads(line)
    match answer["outcome"]:
        case "rejected":
            raise Reject("as ordered", kind="Ordered")
        case "failed" | "refused" as outcome:
            raise RuntimeError(f"the service {outcome} it")
    return answer


async def _do(ctx: Context, order: Order) -> int:
    answer = await _ask_for(ctx, "do", order["words"].get(ctx.step, ""))
    return int(answer["receipt"])


async def _undo(ctx: Context, order: Order) -> Any:
    answer = await _ask_for(ctx, "undo", order["words"].get(f"undo-{ctx.step}", ""))
    return EMPTY if answer["outcome"] == "nothing" else None


async def _ask_for(ctx: Context, what: What, words: str) -> dict[str, Any]:
    operation = str(ctx.action_operation_id)
    return await ask(
        Request(
            what, operation, operation, str(ctx.task), ctx.step, ctx.attempt, os.getpid(), words
        )
    )


def trade(name: str, *actions: str) -> Agent:
    """An agent whose actions are one call each; `undo-book` compensates `book`."""
    agent = Agent(name)
    for action in actions:
        agent.action(action)(_do)
        agent.compensation(f"undo-{action}")(_undo)
    return agent


def _about(call: Call, what: What, operation: str, words: str) -> Request:
    return Request(
        what, str(call.id), operation, str(call.task), call.tool, call.attempt, os.getpid(), words
    )


@tool(recovery="natural", model=True, retry=TRIES)
async def think(call: Call, operation: str, words: str) -> Metered[int]:
    answer = await ask(_about(call, "model", operation, words))
    return Metered(answer["receipt"], input_tokens=10, output_tokens=1)


@tool(recovery="dedupe_key", retry=TRIES)
async def pay(call: Call, operation: str, number: int, words: str) -> int:
    return int((await ask(_about(call, "use", operation, words)))["receipt"])


@tool(recovery="dedupe_key", sensitive=True, retry=TRIES)
async def seal(call: Call, operation: str, words: str) -> int:
    return int((await ask(_about(call, "use", operation, words)))["receipt"])


async def was_mailed(call: Call, operation: str, words: str) -> Any:
    answer = await ask(_about(call, "look", operation, ""))
    return Happened(0) if answer["outcome"] == "found" else DID_NOT_HAPPEN


@tool(recovery="check", check=was_mailed, retry=TRIES)
async def mail(call: Call, operation: str, words: str) -> int:
    return int((await ask(_about(call, "send", operation, words)))["receipt"])


TOOLS = (think, pay, seal, mail)
EFFECTS_OF_RUN = {"pay": 2, "seal": 1, "mail": 1}


def desk() -> Agent:
    """An agent that works with tools, through a journal; `recall` compensates `run`."""
    agent = Agent("desk")

    @agent.action("run", tools=TOOLS)
    async def run(ctx: Context, order: Order) -> dict[str, int]:
        words, operation = order["words"], str(ctx.operation_id)
        await ctx.call(think, operation, words.get("think", ""))
        pays = (ctx.call(pay, operation, n, words.get("pay", "")) for n in (1, 2))
        await asyncio.gather(*pays)
        await ctx.checkpoint({"paid": 2})
        await ctx.call(seal, operation, words.get("seal", ""))
        return {"mail": await ctx.call(mail, operation, words.get("mail", ""), key="the mail")}

    @agent.compensation("recall")
    async def recall(ctx: Context, order: Order) -> Any:
        answer = await _ask_for(ctx, "recall", order["words"].get("undo-run", ""))
        return EMPTY if answer["outcome"] == "nothing" else None

    return agent


def wreck() -> Agent:
    """An agent that ends its process each time it is asked."""
    agent = Agent("wreck")

    @agent.action("crash")
    async def crash(ctx: Context, order: Order) -> None:
        await _ask_for(ctx, "look", "")  # so that the log has it
        os._exit(7)

    agent.compensation("undo-crash")(_undo)
    return agent


def crew() -> list[Agent]:
    return [trade("hall", "book"), trade("till", "charge"), trade("depot", "ship", "tell"), desk()]


def sagas() -> list[Saga]:
    """One step after the other; two beside each other; one that works with tools; a doomed one."""
    patient = {"retry": PATIENT, "compensation_retry": PATIENT}
    book = {"compensate": "hall.undo-book", **patient}
    charge = {"compensate": "till.undo-charge", **patient}
    return [
        Saga("trip")
        .step("book", "hall.book", **book)
        .step("charge", "till.charge", after="book", **charge)
        .step("ship", "depot.ship", after="charge", pivot=True, retry=PATIENT)
        .step("tell", "depot.tell", after="ship", retry=ENDLESS),
        Saga("fork")
        .step("book", "hall.book", **book)
        .step("charge", "till.charge", **charge)
        .step("ship", "depot.ship", after=("book", "charge"), pivot=True, retry=PATIENT),
        Saga("errand")
        .step("run", "desk.run", compensate="desk.recall", **patient)
        .step("charge", "till.charge", after="run", **charge)
        .step("ship", "depot.ship", after="charge", pivot=True, retry=PATIENT),
        Saga("doomed")
        .step("book", "hall.book", **book)
        .step("crash", "wreck.crash", compensate="wreck.undo-crash", after="book", **patient)
        .step("ship", "depot.ship", after="crash", pivot=True, retry=PATIENT),
    ]
