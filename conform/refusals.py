"""Checks that nothing is carried out but what a coordinator signed for this very subject."""

from __future__ import annotations

import asyncio

import orjson
from headway.agents.pull import term
from headway.conform.actions import ECHO
from headway.conform.kit import Checks, Kit
from headway.conform.order import QUIET_S, Order
from headway.conform.seen import Broken

CHECKS = Checks()
TERM = term("").split()[0]


@CHECKS.must("a command that is not signed is not carried out")
async def unsigned(kit: Kit) -> None:
    order = kit.order(ECHO)
    await _refused(await order.send_raw(orjson.dumps(order.unsigned())))


@CHECKS.must("a command that was changed after it was signed is not carried out")
async def tampered(kit: Kit) -> None:
    order = kit.order(ECHO, "yours")
    body = kit.standin.sign(order.subject, orjson.dumps(order.unsigned()))
    await _refused(await order.send_raw(body.replace(b'"yours"', b'"mine!"')))


@CHECKS.must("a command that was signed for another subject is not carried out")
async def moved(kit: Kit) -> None:
    order, other = kit.order(ECHO), kit.order(ECHO)
    body = kit.standin.sign(other.subject, orjson.dumps(order.unsigned()))
    await _refused(await order.send_raw(body))


@CHECKS.must("a command that names another task or step than its subject is not carried out")
async def other_task(kit: Kit) -> None:
    order, other = kit.order(ECHO), kit.order(ECHO)
    body = orjson.dumps(other.unsigned())
    await _refused(await order.send_raw(kit.standin.sign(order.subject, body)))


@CHECKS.must("junk is taken out, whoever signed it, and stops nothing")
async def junk(kit: Kit) -> None:
    bodies = [b"", b"\x00", b"null", b"[]", b"{}", b'"text"', b"\xff\xfe", b"[" * 100_000]
    signable = [b'{"specversion":"9.9"}', b'{"task":7}', b"{1}", b"{\xff}"]
    orders = [await kit.order(ECHO).send_raw(body) for body in bodies]
    for body in signable:
        order = kit.order(ECHO)
        orders.append(await order.send_raw(kit.standin.sign(order.subject, body)))
    await asyncio.gather(*(_refused(order) for order in orders))


@CHECKS.should("what is refused is taken out with +TERM, and kept as a dead letter with the reason")
async def dead_letters(kit: Kit) -> None:
    order = kit.order(ECHO)
    await order.send_raw(orjson.dumps(order.unsigned()))
    answer = await order.acked()
    if not answer.body.startswith(TERM):
        raise Broken(f"the answer was {answer.body[:40]!r}")
    letters = [orjson.loads(each.body) for each in kit.standin.log.of("letter")]
    mine = [each for each in letters if each.get("subject") == order.subject]
    if not mine or not mine[0].get("reason"):
        raise Broken("there is no dead letter with a reason")


async def _refused(order: Order) -> None:
    """It is taken out, and nothing comes of it."""
    await order.acked()
    await asyncio.sleep(QUIET_S)
    if order.events():
        raise Broken("it was carried out")
