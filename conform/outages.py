"""Checks that disturb all others, so each has the agent to itself: streams that take nothing, a
server that is killed, and the agent's own end.
"""

from __future__ import annotations

import asyncio
from typing import Any

from headway.agents import subjects
from headway.agents.catalogue_views import Presence
from headway.agents.messages import COMPLETED
from headway.conform.actions import ECHO, WORK
from headway.conform.kit import Checks, Kit, NotTested
from headway.conform.order import TAKES_OUT, Order
from headway.conform.outcomes import expect
from headway.conform.seen import ENDINGS, Broken
from headway.coordinator.jetstream import ask

CHECKS = Checks()
FULL_FOR_S = 1.5
BACK_WITHIN_S = 20.0
STOPS_WITHIN_S = 15.0
NAK = b"-NAK"


@CHECKS.must(
    "an event that no stream took is stored again, and the command acked only then", alone=True
)
async def event_not_stored(kit: Kit) -> None:
    config = (await ask(kit.standin.wire, f"STREAM.INFO.{subjects.EVENTS_STREAM}"))["config"]
    await _update(kit, config | {"max_bytes": 1})
    order = await kit.order(ECHO).send()
    seen, _ = await order.event(*ENDINGS)
    await asyncio.sleep(FULL_FOR_S)
    acked_early = [each for each in order.answers if each.body in TAKES_OUT]
    await _update(kit, config)
    if acked_early:
        raise Broken("the command was acked though its event was not stored")
    acked = await order.acked(within_s=BACK_WITHIN_S)
    last, _ = order.events(*ENDINGS)[-1]
    if last.at == seen.at or acked.at < last.at:
        raise Broken("the event was not stored again")


@CHECKS.must("after a nats-server that was killed the agent goes on with what it had", alone=True)
async def server_killed(kit: Kit) -> None:
    order = await kit.order(WORK, {"ms": 1_000}).send()
    await _delivered(order)
    back = asyncio.Event()
    forget = kit.standin.wire.on_reconnect(back.set)
    kit.kill_nats()
    async with asyncio.timeout(BACK_WITHIN_S):
        await back.wait()
    forget()
    _, event = await order.event(*ENDINGS, within_s=BACK_WITHIN_S)
    expect("its end", event.type, COMPLETED)
    await order.acked(within_s=BACK_WITHIN_S)
    after = await kit.order(ECHO, "after").send()
    expect("the next input", (await after.completed(BACK_WITHIN_S))["input"], "after")


@CHECKS.must("told to stop, it finishes or hands back what it has, and ends", alone=True)
async def graceful_stop(kit: Kit) -> None:
    if kit.process is None:
        raise NotTested("only of an agent that the kit starts: headway conform AGENT -- COMMAND …")
    order = await kit.order(WORK, {"ms": 1_200}).send()
    await _delivered(order)
    kit.process.tell_to_stop()
    status = await kit.process.exited(STOPS_WITHIN_S)
    if status is None:
        raise Broken(f"it still runs {STOPS_WITHIN_S:g} s after SIGTERM")
    expect("its exit status", status, 0)
    answer = await order.acked(*TAKES_OUT, NAK, within_s=1.0)
    if answer.body == NAK:
        await order.event("headway.attempt.handedback", within_s=0.5)
    elif not order.events(*ENDINGS):
        raise Broken("the command was taken out, and nothing was said of it")


@CHECKS.should("an agent that stops says so, so that nobody waits for it", alone=True)
async def says_that_it_stops(kit: Kit) -> None:
    if kit.process is None:
        raise NotTested("only of an agent that the kit starts: headway conform AGENT -- COMMAND …")
    said = [Presence.model_validate_json(each.body) for each in kit.standin.log.of("presence")]
    if not any(each.stopping for each in said):
        raise Broken("no presence said `stopping`")


async def _update(kit: Kit, config: dict[str, Any]) -> None:
    await ask(kit.standin.wire, f"STREAM.UPDATE.{config['name']}", config)


async def _delivered(order: Order) -> None:
    await order.standin.log.until(lambda: order.deliveries or None, BACK_WITHIN_S, "the delivery")
