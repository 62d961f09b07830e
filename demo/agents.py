"""The order desk's four agents. Each runs as a process: `headway agent headway.demo.agents:mail`.

They hold nothing themselves. All they do is call the downstream service, naming each operation by
the id that all attempts share, so that whatever is delivered twice takes effect once.
"""

from __future__ import annotations

import os

from headway.agents import EMPTY, Agent, Context, Reject
from headway.agents.binding import Empty
from headway.demo.calls import ADDRESS_VARIABLE, Answer, Call, ask
from headway.demo.orders import Order
from pydantic import BaseModel

inventory = Agent("inventory")
payments = Agent("payments")
warehouse = Agent("warehouse")
mail = Agent("mail")


class Receipt(BaseModel):
    """The service's number for an effect: the same for each attempt that brought it about."""

    number: int | None


class ServiceFault(Exception):
    """The service could not do it this time; another attempt may."""


@inventory.action("reserve")
async def reserve(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "inventory.reserve", order)


@inventory.compensation("release")
async def release(ctx: Context, order: Order) -> Empty | None:
    return await _undo(ctx, "inventory.reserve", order)


@inventory.action("restock")
async def restock(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "inventory.restock", order)


@payments.action("check-credit")
async def check_credit(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "payments.check-credit", order)


@payments.action("charge")
async def charge(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "payments.charge", order)


@payments.compensation("refund")
async def refund(ctx: Context, order: Order) -> Empty | None:
    return await _undo(ctx, "payments.charge", order)


@payments.action("pay-back")
async def pay_back(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "payments.pay-back", order)


@warehouse.action("ship")
async def ship(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "warehouse.ship", order)


@warehouse.action("receive")
async def receive(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "warehouse.receive", order)


@warehouse.compensation("send-back")
async def send_back(ctx: Context, order: Order) -> Empty | None:
    return await _undo(ctx, "warehouse.receive", order)


@warehouse.action("inspect")
async def inspect(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "warehouse.inspect", order)


@mail.action("confirm")
async def confirm(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "mail.confirm", order)


@mail.action("credit-note")
async def credit_note(ctx: Context, order: Order) -> Receipt:
    return await _act(ctx, "mail.credit-note", order)


async def _act(ctx: Context, action: str, order: Order) -> Receipt:
    call = Call(ctx.operation_id, action, order, attempt=ctx.attempt)
    return Receipt(number=(await _ask(call)).number)


async def _undo(ctx: Context, action: str, order: Order) -> Empty | None:
    call = Call(ctx.action_operation_id, action, order, attempt=ctx.attempt, undo=True)
    return EMPTY if (await _ask(call)).outcome == "empty" else None


async def _ask(call: Call) -> Answer:
    answer = await ask(os.environ[ADDRESS_VARIABLE], call)
    if answer.outcome in ("refused", "fenced"):
        raise Reject(answer.reason, kind=answer.kind)
    if answer.outcome == "failed":
        raise ServiceFault(answer.reason)
    return answer
