"""Checks of how an attempt ends: done, refused, later please, failed, and too large."""

from __future__ import annotations

import asyncio
from typing import Any

from headway.agents.identity import operation_id
from headway.agents.messages import INLINE_MAX_BYTES, INPUT_MAX_BYTES, FailureData
from headway.conform.actions import DOUBLE, ECHO, END, LARGE, UNDO
from headway.conform.kit import Checks, Kit
from headway.conform.seen import Broken

CHECKS = Checks()
MANY = 200
MANY_WITHIN_S = 15.0


def expect(what: str, found: Any, wanted: Any) -> None:
    """Broken unless both are the same."""
    if found != wanted:
        raise Broken(f"{what} is {found!r}, not {wanted!r}")


@CHECKS.must("an action is carried out, its result stored, and only then its command acked")
async def action(kit: Kit) -> None:
    order = await kit.order(ECHO, {"text": "Grüße \u2028 \U0001f600"}).send()
    expect("the input", (await order.completed())["input"], order.input)


@CHECKS.must("the id of an operation is the UUIDv5 of task, step and phase")
async def operation(kit: Kit) -> None:
    order = await kit.order(ECHO, step="a-step").send()
    wanted = str(operation_id(order.task, "a-step", "action"))
    expect("the operation id", (await order.completed())["operation"], wanted)


@CHECKS.must("an action sees its attempt, and the results of the steps before it")
async def results(kit: Kit) -> None:
    known = {"charge": {"id": 7, "lines": [None, True, 0.5]}}
    order = kit.order(ECHO, attributes={"attempt": 3}, data={"results": known})
    found = await (await order.send()).completed()
    expect("the attempt", found["attempt"], 3)
    expect("the results", found["results"], known)


@CHECKS.must("attributes that the agent does not know do no harm")
async def unknown_attributes(kit: Kit) -> None:
    order = kit.order(ECHO, 1, attributes={"laterversion": {"a": 1}}, data={"later": []})
    expect("the input", (await (await order.send()).completed())["input"], 1)


@CHECKS.must("a null input is an input")
async def null_input(kit: Kit) -> None:
    expect("the input", (await (await kit.order(ECHO).send()).completed())["input"], None)


@CHECKS.must("an input that does not fit fails for good, as InvalidInput, without an effect")
async def wrong_input(kit: Kit) -> None:
    good = await kit.order(DOUBLE, {"number": 21}).send()
    expect("the result", await good.completed(), {"number": 42})
    for wrong in ({"number": "21"}, {"numbre": 21}, None):
        order = await kit.order(DOUBLE, wrong).send()
        _expect_failure(await order.failed(), "InvalidInput", retryable=False, noeffect=True)


@CHECKS.must("a rejection fails for good, without an effect, and says why")
async def reject(kit: Kit) -> None:
    order = await kit.order(END, {"how": "reject", "reason": "over the limit"}).send()
    error = await order.failed()
    expect("the reason", error.message, "over the limit")
    _expect_failure(error, error.type, retryable=False, noeffect=True)


@CHECKS.must("an agent that wants to be asked again later says after how long")
async def retry(kit: Kit) -> None:
    order = await kit.order(END, {"how": "retry", "after_ms": 1500}).send()
    error = await order.failed()
    expect("retryafterms", error.retryafterms, 1500)
    _expect_failure(error, error.type, retryable=True, noeffect=False)


@CHECKS.must("whatever else goes wrong is tried again, and may have had an effect")
async def failure(kit: Kit) -> None:
    order = await kit.order(END, {"how": "fail", "reason": "out of paper"}).send()
    error = await order.failed()
    expect("the message", error.message, "out of paper")
    _expect_failure(error, error.type, retryable=True, noeffect=False)


@CHECKS.must("an action that this version of the agent does not have fails as UnknownAction")
async def unknown_action(kit: Kit) -> None:
    for order in (kit.order("conform-no-such"), kit.order(UNDO), kit.order(ECHO)):
        if order.action == ECHO:
            order.phase = "compensation"
        error = await (await order.send()).failed()
        _expect_failure(error, "UnknownAction", retryable=True, noeffect=True)


@CHECKS.must("a result over 1 MiB fails for good, as ResultTooLarge")
async def result_too_large(kit: Kit) -> None:
    order = await kit.order(LARGE, {"bytes": INPUT_MAX_BYTES}).send()
    _expect_failure(await order.failed(), "ResultTooLarge", retryable=False, noeffect=False)


@CHECKS.must("data over 256 KiB travel by reference, in both directions")
async def payload_by_reference(kit: Kit) -> None:
    size = INLINE_MAX_BYTES + 70_000
    there = await kit.order(ECHO, "x" * size).send_large()
    expect("the input that came back", (await there.completed())["input"] == there.input, True)
    back = await kit.order(LARGE, {"bytes": size}).send()
    expect("the size of the result", len((await back.completed())["text"]), size)


@CHECKS.must("data that are not what their digest says fail as PayloadLost, to be tried again")
async def payload_lost(kit: Kit) -> None:
    order = kit.order(ECHO, "right")
    await order.send_large()
    await order.completed()
    for change in ({"datadigest": "0" * 64}, {"dataref": _elsewhere(order.attributes["dataref"])}):
        other = kit.order(ECHO, attributes=order.attributes | change)
        error = await (await other.send()).failed(within_s=10.0)
        _expect_failure(error, "PayloadLost", retryable=True, noeffect=True)


@CHECKS.must("an encrypted task is not worked on without the keys: a person must look")
async def encrypted(kit: Kit) -> None:
    order = kit.order(ECHO, {"$sealed": "none.AAAA"}, data={"sealed": True})
    error = await (await order.send()).failed()
    _expect_failure(error, "Undecryptable", retryable=True, noeffect=True)
    expect("hold", error.hold, True)


@CHECKS.must(f"{MANY} commands at once are all answered")
async def many(kit: Kit) -> None:
    orders = [kit.order(ECHO, number) for number in range(MANY)]
    await asyncio.gather(*(order.send() for order in orders))
    found = await asyncio.gather(*(order.completed(MANY_WITHIN_S) for order in orders))
    expect("the inputs", [each["input"] for each in found], list(range(MANY)))


def _expect_failure(error: FailureData, kind: str, *, retryable: bool, noeffect: bool) -> None:
    for what, found, wanted in (
        ("the error's type", error.type, kind),
        ("retryable", error.retryable, retryable),
        ("noeffect", error.noeffect, noeffect),
    ):
        expect(f"{what} (of {error.type}: {error.message})", found, wanted)


def _elsewhere(reference: str) -> str:
    """A reference to something that nobody has stored."""
    *space, digest, parts = reference.split(".")
    return ".".join([*space, "f" * len(digest), parts])
