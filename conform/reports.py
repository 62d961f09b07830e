"""Checks of what an agent says while it works, and of how it is told to stop working."""

from __future__ import annotations

import asyncio

from headway.agents import subjects
from headway.agents.catalogue_views import PRESENCE_INTERVAL_S, Presence
from headway.agents.messages import COMPLETED, STARTED, TIMED_OUT
from headway.conform.actions import ECHO, WORK
from headway.conform.kit import Checks, Kit
from headway.conform.order import WITHIN_S, heartbeats
from headway.conform.outcomes import expect
from headway.conform.seen import ENDINGS, Broken
from pydantic import ValidationError

CHECKS = Checks()
STOPPED_WITHIN_S = 5.0
STRAY = b"NATS/1.0\r\nNats-Stream: HW_PAYLOADS\r\n\r\n"


@CHECKS.must("an attempt that is to report its start does so before anything else")
async def start(kit: Kit) -> None:
    order = await kit.order(ECHO, attributes={"reportstart": True}).send()
    await order.ended()
    kinds = [event.type for _, event in order.events()]
    expect("the events", kinds, [STARTED, COMPLETED])


@CHECKS.must("an attempt that nobody asked to report its start does not")
async def no_start(kit: Kit) -> None:
    order = await kit.order(ECHO).send()
    await order.ended()
    expect("the events", [event.type for _, event in order.events()], [COMPLETED])


@CHECKS.should("heartbeats come within their timeout, with progress, each under an id of its own")
async def heartbeat(kit: Kit) -> None:
    order = kit.order(WORK, {"ms": 1_500}, attributes={"heartbeatms": 900})
    await order.send()
    await order.completed()
    said = heartbeats(order)
    if len(said) < 2:
        raise Broken(f"{len(said)} heartbeats in 1.5 s, with a timeout of 0.9 s")
    expect("the ids that are different", len({each.id for each in said}), len(said))
    if not any(each.data is not None and each.data.progress is not None for each in said):
        raise Broken("no heartbeat has progress")


@CHECKS.must("an attempt that has had its time ends at once, as timed out")
async def deadline(kit: Kit) -> None:
    order = kit.order(WORK, {"ms": 20_000}, attributes={"starttoclosems": 600})
    await order.send()
    began = (await order.event(*ENDINGS, within_s=WITHIN_S))[0].at
    event, _ = await order.ended()
    expect("its end", event.type, TIMED_OUT)
    if began - order.deliveries[0].at < 0.55:
        raise Broken("it was given up before its time")


@CHECKS.should("a handler is told that its work is not wanted any more, as of its attempt")
async def stop_hint(kit: Kit) -> None:
    order = kit.order(WORK, {"ms": 15_000}, attributes={"attempt": 2})
    await order.send()
    await _held(kit, order.subject)
    subject = subjects.stop_subject(kit.standin.agent, str(order.task), order.step)
    for body, headers in ((b"1", b""), (b"junk", b""), (b"2", STRAY)):
        kit.standin.say(subject, body, headers=headers)
    await asyncio.sleep(0.3)
    if order.events(*ENDINGS):
        raise Broken("it stopped for an older attempt's hint, for junk, or for a stray answer")
    kit.standin.say(subject, b"2")
    found = await order.completed(within_s=STOPPED_WITHIN_S)
    expect("`stopped`", found["stopped"], True)


@CHECKS.must("an instance listens on its agent's roll, and says which commands it has")
async def roll(kit: Kit) -> None:
    order = await kit.order(WORK, {"ms": 2_500}).send()
    await _held(kit, order.subject)
    await order.completed()
    await asyncio.sleep(0.1)
    found = await kit.standin.holdings()
    if found is not None and order.subject in found.held:
        raise Broken("it says that it has a command that it has answered")


@CHECKS.should("an instance says each second that it is there, and with what actions")
async def presence(kit: Kit) -> None:
    last = len(list(kit.standin.log.of("presence")))
    said = await kit.standin.log.until(
        lambda: list(kit.standin.log.of("presence"))[last:] or None,
        PRESENCE_INTERVAL_S + 1.5,
        "presence",
    )
    try:
        seen = Presence.model_validate_json(said[0].body)
    except ValidationError as error:
        raise Broken(f"presence does not fit its schema: {error}") from error
    expect("the agent", seen.agent, kit.standin.agent)
    if ECHO not in seen.actions:
        raise Broken(f"{ECHO} is not among its actions")
    if seen.server and seen.worker not in await kit.standin.members():
        raise Broken("it names a server, but no worker of its name is on the roll")


async def _held(kit: Kit, subject: str) -> None:
    """Wait until an instance says that it has this command."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while True:
                found = await kit.standin.holdings()
                if found is not None and subject in found.held:
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Broken("no instance says on the roll that it has the command") from None
