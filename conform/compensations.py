"""Checks of how an agent undoes what it did, may have done, or never did."""

from __future__ import annotations

from typing import Any

from headway.agents.identity import operation_id
from headway.conform.actions import UNDO
from headway.conform.kit import Checks, Kit
from headway.conform.order import Order
from headway.conform.outcomes import expect
from headway.conform.seen import Broken

CHECKS = Checks()


@CHECKS.must("a compensation gets the action's result, and knows the action's operation id")
async def compensation(kit: Kit) -> None:
    result = {"id": 17}
    order = await _undoing(kit, {"effect": True}, result=result, outcome_unknown=False)
    found = await order.completed()
    expect("the result to undo", found["result"], result)
    expect("outcome_unknown", found["outcome_unknown"], False)
    expect("its operation id", found["operation"], _operation(order, "compensation"))
    expect("the action's operation id", found["action_operation"], _operation(order, "action"))


@CHECKS.must("a compensation undoes what nobody knows to have happened")
async def unknown_outcome(kit: Kit) -> None:
    order = await _undoing(kit, {"effect": True}, result=None, outcome_unknown=True)
    found = await order.completed()
    expect("the result to undo", found["result"], None)
    expect("outcome_unknown", found["outcome_unknown"], True)


@CHECKS.must("a compensation that finds nothing to undo says so")
async def nothing_to_undo(kit: Kit) -> None:
    order = await _undoing(kit, {"effect": False}, result=None, outcome_unknown=True)
    _, data = await order.ended()
    if data.error is not None or not data.empty:
        raise Broken("the event does not say `empty`")


async def _undoing(kit: Kit, input: Any, **data: Any) -> Order:
    return await kit.order(UNDO, input, phase="compensation", data=data).send()


def _operation(order: Order, phase: str) -> str:
    return str(operation_id(order.task, order.step, phase))
