"""The desk: which tasks it submits, for which orders, and what it makes of their ends."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import pytest
from headway.agents import Client, NotFound, Unavailable
from headway.agents.views import HistoryEntry, TaskView
from headway.demo.desk import Desk
from headway.demo.narration import Narration
from headway.demo.orders import Order
from headway.demo.sagas import FULFIL_ORDER, REFUND
from rich.console import Console


class Coordinator:
    """Stands in for the client: settles each task at once, as told by the order's name."""

    def __init__(self, view: TaskView) -> None:
        self._view = view
        self.registered: list[str] = []
        self.submitted: list[tuple[str, str, str]] = []
        self._orders: dict[UUID, tuple[str, Order]] = {}

    async def register(self, saga: Any) -> None:
        self.registered.append(saga.name)

    async def submit(self, saga: str, order: Order, *, task: UUID) -> None:
        self._take("submit", saga, order, task)

    async def publish(self, saga: str, order: Order, *, task: UUID) -> None:
        self._take("publish", saga, order, task)

    def _take(self, how: str, saga: str, order: Order, task: UUID) -> None:
        if order.order == "unheard":
            raise Unavailable("nobody answered")
        self.submitted.append((how, saga, order.order))
        self._orders[task] = (saga, order)

    async def result(self, task: UUID, *, timeout: float) -> TaskView:
        if self._orders[task][1].order == "stuck":
            raise Unavailable(f"not settled after {timeout:g} s")
        return await self.status(task)

    async def status(self, task: UUID) -> TaskView:
        if task not in self._orders:
            raise NotFound("no such task")
        saga, order = self._orders[task]
        status = {"failing": "compensated", "stuck": "running"}.get(order.order, "succeeded")
        return self._view.model_copy(update={"task": task, "saga": saga, "status": status})

    async def history(self, task: UUID) -> list[HistoryEntry]:
        return [HistoryEntry(version=1, type="TaskSubmitted", at=self._view.created_at)]


@pytest.fixture
def coordinator(desk: Any) -> Coordinator:
    return Coordinator(desk.claims[0].task)


@pytest.fixture
def open_desk(coordinator: Coordinator) -> Desk:
    return Desk(cast(Client, coordinator), Narration(Console(file=io.StringIO())))


MakeOrder = Callable[..., Order]


async def test_both_sagas_are_made_known(open_desk: Desk, coordinator: Coordinator) -> None:
    await open_desk.open()
    assert coordinator.registered == [FULFIL_ORDER, REFUND]


async def test_orders_are_submitted_and_published_by_turns(
    open_desk: Desk, coordinator: Coordinator, make_order: MakeOrder
) -> None:
    await open_desk.serve([make_order(f"O-{n}") for n in range(4)], span_s=0.01)
    ways = {order: how for how, _, order in coordinator.submitted}
    assert ways == {"O-0": "submit", "O-1": "publish", "O-2": "submit", "O-3": "publish"}


async def test_only_returned_orders_that_were_fulfilled_are_refunded(
    open_desk: Desk, coordinator: Coordinator, make_order: MakeOrder
) -> None:
    orders = [make_order("kept"), make_order("back", returned=True)]
    orders.append(make_order("failing", returned=True))
    await open_desk.serve(orders, span_s=0.01)
    refunds = [order for _, saga, order in coordinator.submitted if saga == REFUND]
    assert refunds == ["back"]


async def test_a_task_that_does_not_settle_has_a_claim_but_no_latency(
    open_desk: Desk, make_order: MakeOrder
) -> None:
    await open_desk.serve([make_order("stuck"), make_order("plain")], span_s=0.01)
    assert len(open_desk.latencies_s()) == 1
    claims = await open_desk.claims()
    assert {claim.order.order: claim.task.status for claim in claims} == {
        "stuck": "running",
        "plain": "succeeded",
    }
    assert all(len(claim.history) == 1 for claim in claims)


async def test_a_task_that_nobody_knows_has_no_claim(
    open_desk: Desk, make_order: MakeOrder
) -> None:
    await open_desk.serve([make_order("unheard"), make_order("plain")], span_s=0.01)
    assert [claim.order.order for claim in await open_desk.claims()] == ["plain"]
