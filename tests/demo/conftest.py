"""A small order desk without any servers: real books, and the tasks that would claim them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from headway.agents.identity import ACTION, new_task_id, operation_id
from headway.agents.views import HistoryEntry, StepStatus, StepView, TaskStatus, TaskView
from headway.demo.audit import Case, Claim
from headway.demo.books import ACTIONS
from headway.demo.calls import Answer, Call
from headway.demo.evidence import read_evidence
from headway.demo.ledger import Ledger
from headway.demo.orders import Order
from headway.demo.sagas import FULFIL_ORDER, fulfil_order, refund
from headway.sagas.definition import Definition

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)

MakeOrder = Callable[..., Order]


@pytest.fixture
def make_order() -> MakeOrder:
    """An order that fares well, with any field changed."""

    def make(order: str = "O-1", **changes: Any) -> Order:
        fields: dict[str, Any] = {
            "order": order,
            "customer": "ada",
            "email": "ada@mail.example",
            "card": "visa-1",
            "city": "Oslo",
            "sku": "mug",
            "quantity": 1,
            "price_cents": 500,
        }
        return Order(**(fields | changes))

    return make


@dataclass
class Desk:
    """Runs sagas straight on a ledger, step by step, as faultless agents would."""

    ledger: Ledger
    path: Path
    orders: list[Order]
    claims: list[Claim]

    def run(self, saga: Definition, order: Order) -> Claim:
        """Run the whole saga, undoing what was done when a step before the pivot is refused."""
        task = new_task_id()
        steps: list[StepView] = []
        status: TaskStatus = "succeeded"
        for step in saga.steps.values():
            if status != "succeeded":
                steps.append(_view(step.name, step.action, "skipped"))
                continue
            answer = self.ledger.perform(call(task, step.name, step.action, order))
            if answer.outcome != "refused":
                steps.append(_view(step.name, step.action, "completed", answer))
                continue
            steps.append(_view(step.name, step.action, "failed"))
            status = "parked" if saga.is_after_pivot(step.name) else "compensated"
            if status == "compensated":
                steps = [self._undone(task, order, done) for done in steps]
        claim = _claim(task, saga.name, order, status, steps)
        self.claims.append(claim)
        return claim

    def _undone(self, task: UUID, order: Order, step: StepView) -> StepView:
        if step.status != "completed" or ACTIONS[step.action].read_only:
            return step
        self.ledger.perform(call(task, step.name, step.action, order, undo=True))
        return step.model_copy(update={"status": "compensated", "result": None})

    def case(self) -> Case:
        return Case(self.orders, tuple(self.claims), read_evidence(self.path))


def call(task: UUID, step: str, action: str, order: Order, **changes: Any) -> Call:
    return Call(operation_id(task, step, ACTION), action, order, **changes)


def _view(name: str, action: str, status: StepStatus, answer: Answer | None = None) -> StepView:
    result = {"number": answer.number} if answer else None
    return StepView(
        name=name, action=action, status=status, attempt=1, phase="action", result=result
    )


def _claim(task: UUID, saga: str, order: Order, status: TaskStatus, steps: list[StepView]) -> Claim:
    parked = status == "parked"
    view = TaskView(
        task=task,
        saga=saga,
        saga_version=1,
        status=status,
        version=3,
        reason="a step was refused" if parked else "",
        actions=["retry"] if parked else [],
        created_at=NOON,
        updated_at=NOON,
        steps=steps,
    )
    history = tuple(HistoryEntry(version=n, type="Something", at=NOON) for n in (1, 2, 3))
    return Claim(order, view, history)


@pytest.fixture
def desk(tmp_path: Path, make_order: MakeOrder) -> Desk:
    """A desk after a day on which every kind of thing happened to some order, and no harm."""
    orders = [
        make_order("plain", quantity=3),
        make_order("returned", returned=True, sku="lamp", quantity=2),
        make_order("damaged", returned=True, damaged=True, sku="lamp"),
        make_order("declined", card="declined-visa-1"),
        make_order("unserved", city="Atlantis", customer="grace"),
        make_order("bounced", email="ada@bounces.example"),
        make_order("large", customer="grace", quantity=20),
        make_order("out-of-stock", quantity=60, customer="grace"),
    ]
    path = tmp_path / "downstream.sqlite3"
    desk = Desk(Ledger(path, orders), path, orders, [])
    for order in orders:
        fulfilled = desk.run(fulfil_order().define(), order)
        if order.returned and fulfilled.task.status == "succeeded":
            desk.run(refund().define(), order)
    assert {claim.task.status for claim in desk.claims if claim.task.saga == FULFIL_ORDER} == {
        "succeeded",
        "compensated",
        "parked",
    }
    return desk
