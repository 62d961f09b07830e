"""Checks of what is done with a command that comes again, late, or when it is not its turn."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from headway.agents import subjects
from headway.agents.pull import ACK_WAIT_S
from headway.agents.views import ClaimReply
from headway.conform.actions import ECHO, WORK
from headway.conform.kit import Checks, Kit
from headway.conform.order import QUIET_S, Order
from headway.conform.outcomes import expect
from headway.conform.seen import ENDINGS, Broken

CHECKS = Checks()
AGAIN_WITHIN_S = 8.0  # a claim that is not answered is asked again
LONG_MS = round(1.5 * ACK_WAIT_S * 1_000)
GRANTED_EPOCH = 4


@CHECKS.must("a command that comes for the first time is begun without a claim")
async def first_delivery(kit: Kit) -> None:
    order = await kit.order(ECHO).send()
    await order.completed()
    if any(not claim.first for claim in order.claims):
        raise Broken("it was claimed: each claim counts as the death of a worker")


@CHECKS.must("a command that comes again once it is done is claimed; refused, it is acked, no more")
async def duplicate(kit: Kit) -> None:
    order = await kit.order(ECHO).send()
    await order.completed()
    order.answer_claims(ClaimReply(granted=False, reason="not outstanding any more"))
    again = Order(kit.standin, order.action, task=order.task)
    await again.send_raw(order.body)
    await again.acked()
    expect("the claims", [claim.first for claim in order.claims if not claim.first], [False])
    await asyncio.sleep(QUIET_S)
    expect("the events that end it", len(order.events(*ENDINGS)), 1)


@CHECKS.must("a command that is delivered again while it is worked on is not begun twice")
async def redelivery(kit: Kit) -> None:
    order = await kit.order(WORK, {"ms": 800}).send()
    first = await kit.standin.log.until(lambda: next(iter(order.deliveries), None), 5.0, "it")
    kit.standin.say(first.reply, b"-NAK")
    await kit.standin.log.until(lambda: order.deliveries[1:] or None, 5.0, "the second delivery")
    await order.completed()
    await kit.standin.log.until(
        lambda: next((each for each in order.answers if each.delivered == 2), None),
        QUIET_S + 2.0,
        "an answer to the second delivery",
    )
    await asyncio.sleep(QUIET_S)
    expect("the events that end it", len({one.id for _, one in order.events(*ENDINGS)}), 1)


@CHECKS.must("a command that may have been begun before is claimed, and runs in the granted epoch")
async def late_granted(kit: Kit) -> None:
    minute_ago = time.time_ns() // 1_000_000 - 60_000
    late: list[dict[str, Any]] = [{"late": True}, {"epoch": 1}, {"sentms": minute_ago}]
    for attributes in late:
        order = kit.order(ECHO, attributes=attributes)
        order.answer_claims(ClaimReply(granted=True, epoch=GRANTED_EPOCH))
        await order.send()
        event, _ = await order.ended()
        [why] = attributes
        if not order.claims:
            raise Broken(f"it was not claimed, though {why} says that it is late")
        expect("the epoch of the event", event.epoch, GRANTED_EPOCH)
        claim = order.claims[0]
        expect("the claim's epoch", claim.epoch, order.attributes.get("epoch", 0))
        expect("the claim's delivery", claim.delivery, 1)


@CHECKS.must("a command whose claim is refused is acked and leaves no event")
async def late_refused(kit: Kit) -> None:
    order = kit.order(ECHO, attributes={"late": True})
    order.answer_claims(ClaimReply(granted=False, reason="not outstanding"))
    await order.send()
    await order.acked()
    await _stays_without_an_end(order)


@CHECKS.must("a command that another worker has is left alone: no event, and no answer either")
async def elsewhere(kit: Kit) -> None:
    order = kit.order(ECHO, attributes={"late": True})
    order.answer_claims(ClaimReply(granted=False, reason="granted already", elsewhere=True))
    await order.send()
    await _claimed(order, 1)
    await _stays_without_an_end(order)
    if any(each.body.strip() != b"+WPI" for each in order.answers):
        raise Broken("it was answered, which takes it from the worker that has it")


@CHECKS.must("a claim that is not answered is asked again, and nothing begins before the answer")
async def claim_unanswered(kit: Kit) -> None:
    order = kit.order(ECHO, attributes={"late": True})
    order.answer_claims(None, ClaimReply(granted=True, epoch=GRANTED_EPOCH))
    await order.send()
    await _claimed(order, 1)
    await _stays_without_an_end(order)
    event, _ = await order.ended(AGAIN_WITHIN_S)
    expect("the epoch of the event", event.epoch, GRANTED_EPOCH)


@CHECKS.must("what is limited asks for its turn, and begins no sooner than told")
async def turn(kit: Kit) -> None:
    order = kit.order(ECHO, attributes={"paced": True})
    order.answer_claims(ClaimReply(granted=True, epoch=0, start_in_ms=700, paced=True))
    await order.send()
    claim = await _claimed(order, 1)
    seen, event = await order.event(*ENDINGS)
    expect("the claim's `first`", order.claims[0].first, True)
    expect("the epoch of the event", event.epoch, 0)
    if seen.at - claim < 0.69:
        raise Broken(f"it ended {seen.at - claim:.2f} s after it was told to begin in 0.7 s")


@CHECKS.must("whose turn is not known yet asks again when told to, and does not begin before")
async def turn_later(kit: Kit) -> None:
    order = kit.order(ECHO, attributes={"paced": True})
    order.answer_claims(
        ClaimReply(granted=True, epoch=0, again_in_ms=500, paced=True),
        ClaimReply(granted=True, epoch=0, paced=True),
    )
    await order.send()
    first = await _claimed(order, 1)
    second = await _claimed(order, 2)
    if second - first < 0.49:
        raise Broken(f"it asked again after {second - first:.2f} s, told to wait 0.5 s")
    seen, _ = await order.event(*ENDINGS)
    if seen.at < second:
        raise Broken("it began before it had its turn")


@CHECKS.must(f"a command that takes longer than {ACK_WAIT_S:g} s is kept: it comes to nobody else")
async def kept(kit: Kit) -> None:
    order = await kit.order(WORK, {"ms": LONG_MS}).send()
    await order.completed(within_s=LONG_MS / 1_000 + 5.0)
    expect("the deliveries", len(order.deliveries), 1)


@CHECKS.should("once it is told that something limits it, it asks for all turns", alone=True)
async def paced(kit: Kit) -> None:
    kit.standin.say(subjects.paced_subject(kit.standin.agent))
    await asyncio.sleep(QUIET_S)
    order = await kit.order(ECHO).send()
    await order.completed()
    expect("the claims' `first`", [claim.first for claim in order.claims], [True])


async def _claimed(order: Order, count: int) -> float:
    """When it was claimed for the so-manieth time, in seconds of the loop's time."""

    def find() -> float | None:
        claims = [each for each in order.standin.log.of("claim") if _of(order, each.body)]
        return claims[count - 1].at if len(claims) >= count else None

    return await order.standin.log.until(find, AGAIN_WITHIN_S, f"claim {count}")


def _of(order: Order, body: bytes) -> bool:
    return str(order.task).encode() in body


async def _stays_without_an_end(order: Order) -> None:
    await asyncio.sleep(QUIET_S)
    if order.events(*ENDINGS):
        raise Broken("it was carried out")
