"""The agents: each saga step has its handler, and answers of the service become outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from headway.agents import EMPTY, Agent, Context, Reject
from headway.agents.testing import context
from headway.demo import agents
from headway.demo.agents import (
    ServiceFault,
    charge,
    check_credit,
    inspect,
    refund,
    release,
    reserve,
)
from headway.demo.calls import ADDRESS_VARIABLE
from headway.demo.downstream import Downstream
from headway.demo.evidence import Evidence, read_evidence
from headway.demo.ledger import Ledger
from headway.demo.orders import Order
from headway.demo.sagas import fulfil_order
from headway.demo.sagas import refund as refund_saga
from headway.demo.trouble import Trouble
from headway.sagas.builder import Saga


class Service:
    """The downstream service in this process, for one order."""

    def __init__(self, path: Path, order: Order) -> None:
        self.path = path
        self.order = order

    @property
    def evidence(self) -> Evidence:
        return read_evidence(self.path)

    def state_of(self, ctx: Context) -> str:
        return self.evidence.fence[str(ctx.action_operation_id)].state


@pytest.fixture
def trouble() -> Trouble:
    return Trouble()


@pytest.fixture
async def service(
    tmp_path: Path,
    make_order: Callable[..., Order],
    monkeypatch: pytest.MonkeyPatch,
    trouble: Trouble,
) -> AsyncIterator[Service]:
    path = tmp_path / "downstream.sqlite3"
    orders = [make_order(), make_order("O-2", quantity=40)]
    ledger = Ledger(path, orders)
    downstream = Downstream(ledger, lambda _order, _call, _repetition: trouble)
    async with await asyncio.start_server(downstream.serve, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        monkeypatch.setenv(ADDRESS_VARIABLE, f"{host}:{port}")
        yield Service(path, orders[0])
    ledger.close()


@pytest.mark.parametrize("saga", [fulfil_order(), refund_saga()], ids=lambda saga: saga.name)
def test_each_step_of_a_saga_has_its_handler(saga: Saga) -> None:
    for step in saga.define().steps.values():
        for named, phase in ((step.action, "action"), (step.compensate, "compensation")):
            if named is None:
                continue
            name, _, action = named.partition(".")
            agent = getattr(agents, name)
            assert isinstance(agent, Agent)
            assert agent.name == name
            assert agent.handlers[action].phase == phase


async def test_all_attempts_of_an_action_get_the_receipt_of_its_one_effect(
    service: Service,
) -> None:
    first = context(step="reserve")
    receipt = await reserve(first, service.order)
    assert receipt.number is not None
    again = context(task=first.task, step="reserve", attempt=2)
    assert await reserve(again, service.order) == receipt
    assert [call.outcome for call in service.evidence.calls] == ["applied", "duplicate"]


async def test_a_compensation_undoes_what_the_action_did(service: Service) -> None:
    ctx = context(step="reserve")
    await reserve(ctx, service.order)
    undo = context(task=ctx.task, step="reserve", phase="compensation")
    assert await release(undo, service.order) is None
    assert service.state_of(ctx) == "undone"


async def test_a_compensation_without_an_action_is_empty_and_bars_it(service: Service) -> None:
    ctx = context(step="charge")
    undo = context(task=ctx.task, step="charge", phase="compensation", outcome_unknown=True)
    assert await refund(undo, service.order) is EMPTY
    with pytest.raises(Reject) as refused:
        await charge(ctx, service.order)
    assert refused.value.kind == "Fenced"
    assert service.state_of(ctx) == "barred"


async def test_a_business_refusal_is_a_rejection_of_its_kind(service: Service) -> None:
    declined = service.order.model_copy(update={"card": "declined-visa-1"})
    assert (await check_credit(context(step="check-credit"), declined)).number is None
    with pytest.raises(Reject) as refused:
        await charge(context(step="charge"), declined)
    assert refused.value.kind == "CardDeclined"
    with pytest.raises(Reject, match="damaged"):
        await inspect(context(), service.order.model_copy(update={"damaged": True}))


@pytest.mark.parametrize("trouble", [Trouble(fails=True)])
async def test_a_fault_of_the_service_is_no_rejection(service: Service) -> None:
    with pytest.raises(ServiceFault):
        await reserve(context(step="reserve"), service.order)


@pytest.mark.parametrize("trouble", [Trouble(drops=True)])
async def test_a_missing_answer_is_no_rejection_either(service: Service) -> None:
    with pytest.raises(ConnectionError, match="without an answer"):
        await reserve(context(step="reserve"), service.order)


async def test_a_service_that_is_not_there_is_a_connection_error(
    monkeypatch: pytest.MonkeyPatch, make_order: Callable[..., Order]
) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, "127.0.0.1:1")
    with pytest.raises(ConnectionError):
        await reserve(context(step="reserve"), make_order())
