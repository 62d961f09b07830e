"""The audit passes an honest day, and each clause fails on a forged one.

The day is real (books kept by the real ledger); a forger changes one thing in the evidence or in
the claims, and the clause that should notice must.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args
from uuid import uuid4

import pytest
from headway.agents.identity import new_task_id
from headway.demo.audit import Case, Claim, Clause, Finding, audit
from headway.demo.books import Entry
from headway.demo.evidence import Evidence, FenceRow, LoggedCall, PostedEntry
from headway.demo.sagas import FULFIL_ORDER


def _audit(case: Case) -> list[Finding]:
    return audit(case.orders, case.claims, case.evidence)


def _claim(case: Case, order: str, saga: str = FULFIL_ORDER) -> Claim:
    return next(c for c in case.claims if (c.order.order, c.task.saga) == (order, saga))


def _changed(case: Case, order: str, saga: str = FULFIL_ORDER, **changes: Any) -> Case:
    """The case with the task of `order` telling another story."""
    told = _claim(case, order, saga)
    lie = replace(told, task=told.task.model_copy(update=changes))
    return replace(case, claims=[lie if claim is told else claim for claim in case.claims])


def _step_changed(case: Case, order: str, step: str, **changes: Any) -> Case:
    steps = [
        one.model_copy(update=changes) if one.name == step else one
        for one in _claim(case, order).task.steps
    ]
    return _changed(case, order, steps=steps)


def _operation(case: Case, order: str, step: str) -> str:
    claim = _claim(case, order)
    return next(claim.operation(one) for one in claim.task.steps if one.name == step)


def _moved(evidence: Evidence, account: str, amount: int) -> Evidence:
    balances = evidence.balances | {account: evidence.balances.get(account, 0) + amount}
    return replace(evidence, balances=balances)


def _posted(evidence: Evidence, operation: str, *entries: Entry) -> Evidence:
    """The evidence after the service really did post `entries`, balances and all."""
    for entry in entries:
        evidence = _moved(evidence, entry.account, entry.amount)
    posted = tuple(PostedEntry(operation, entry) for entry in entries)
    return replace(evidence, entries=evidence.entries + posted)


def _with_row(evidence: Evidence, row: FenceRow) -> Evidence:
    return replace(evidence, fence=evidence.fence | {row.operation: row})


def _with_call(evidence: Evidence, row: FenceRow, outcome: str) -> Evidence:
    call = LoggedCall(row.operation, row.action, row.order, 1, outcome == "undone", outcome)
    return replace(evidence, calls=(*evidence.calls, call))


def _effect_without_a_claim(case: Case) -> Case:
    """A second parcel goes out, under an operation that no task knows: booked and logged."""
    row = FenceRow(str(uuid4()), 999, "warehouse.ship", "plain", "done")
    moves = (Entry("goods", "reserved/mug", -3), Entry("goods", "parcel/plain", 3))
    evidence = _posted(case.evidence, row.operation, *moves)
    return replace(case, evidence=_with_call(_with_row(evidence, row), row, "applied"))


def _effect_gone(case: Case, order: str, step: str, state: str | None) -> Case:
    operation = _operation(case, order, step)
    fence = dict(case.evidence.fence)
    row = fence.pop(operation)
    if state:
        fence[operation] = replace(row, state=state)
    return replace(case, evidence=replace(case.evidence, fence=fence))


def _applied_again(case: Case, order: str, step: str) -> Case:
    """The fence broke: one operation moved goods or money a second time, and logged it."""
    operation = _operation(case, order, step)
    moves = [posted.entry for posted in case.evidence.entries if posted.operation == operation]
    evidence = _posted(case.evidence, operation, *moves)
    return replace(case, evidence=_with_call(evidence, case.evidence.fence[operation], "applied"))


def _undo_forgotten(case: Case) -> Case:
    """The task says compensated; the reservation still stands, and the log agrees with it."""
    operation = _operation(case, "declined", "reserve")
    row = case.evidence.fence[operation]
    moves = (Entry("goods", "shelf/mug", -1), Entry("goods", "reserved/mug", 1))
    calls = tuple(
        call
        for call in case.evidence.calls
        if (call.operation, call.outcome) != (operation, "undone")
    )
    evidence = _posted(replace(case.evidence, calls=calls), operation, *moves)
    entries = tuple(
        posted
        for posted in evidence.entries
        if posted.operation != operation or posted.entry.amount * _sign(posted.entry) > 0
    )
    return replace(
        case, evidence=_with_row(replace(evidence, entries=entries), replace(row, state="done"))
    )


def _sign(entry: Entry) -> int:
    """Which way a reservation moves: off the shelf, into the reserved ones."""
    return -1 if entry.account.startswith("shelf/") else 1


def _order_forgotten(case: Case) -> Case:
    forgotten = _claim(case, "plain")
    return replace(case, claims=[claim for claim in case.claims if claim is not forgotten])


def _order_run_twice(case: Case) -> Case:
    again = _claim(case, "plain")
    task = again.task.model_copy(update={"task": new_task_id()})
    return replace(case, claims=[*case.claims, replace(again, task=task)])


def _refund_forgotten(case: Case) -> Case:
    return replace(
        case, claims=[c for c in case.claims if c is not _claim(case, "returned", "refund")]
    )


def _task_claimed_twice(case: Case) -> Case:
    return replace(case, claims=[*case.claims, _claim(case, "plain")])


def _history_cut(case: Case, versions: tuple[int, ...]) -> Case:
    told = _claim(case, "plain")
    kept = tuple(entry for entry in told.history if entry.version in versions)
    lie = replace(told, history=kept)
    return replace(case, claims=[lie if claim is told else claim for claim in case.claims])


def _books(account: str, amount: int) -> Callable[[Case], Case]:
    return lambda case: replace(case, evidence=_moved(case.evidence, account, amount))


FORGERIES: dict[str, tuple[str, Callable[[Case], Case]]] = {
    "an order whose task is gone": ("lost", _order_forgotten),
    "an order with two tasks": ("twice", _order_run_twice),
    "a returned order without its refund": ("lost", _refund_forgotten),
    "a task that is still running": ("ended", lambda c: _changed(c, "plain", status="running")),
    "a task that is still being undone": (
        "ended",
        lambda c: _changed(c, "declined", status="compensating"),
    ),
    "a parked task without a reason": ("ended", lambda c: _changed(c, "bounced", reason="")),
    "a parked task without a way on": ("ended", lambda c: _changed(c, "bounced", actions=[])),
    "a success with a step that did not complete": (
        "ended",
        lambda c: _step_changed(c, "plain", "notify", status="scheduled"),
    ),
    "a compensated task with a step of unknown outcome": (
        "ended",
        lambda c: _step_changed(c, "declined", "reserve", status="unknown"),
    ),
    "a completed step whose effect was never heard of": (
        "lost",
        lambda c: _effect_gone(c, "plain", "charge", None),
    ),
    "a completed step whose effect was undone": (
        "lost",
        lambda c: _effect_gone(c, "plain", "charge", "undone"),
    ),
    "a completed step with somebody else's receipt": (
        "lost",
        lambda c: _step_changed(c, "plain", "ship", result={"number": 12345}),
    ),
    "a completed step without a receipt": (
        "lost",
        lambda c: _step_changed(c, "plain", "ship", result=None),
    ),
    "a compensation that the service never heard of": (
        "lost",
        lambda c: _effect_gone(c, "declined", "reserve", None),
    ),
    "an operation applied twice": ("twice", lambda c: _applied_again(c, "plain", "charge")),
    "an order shipped twice, each time as another operation": ("twice", _effect_without_a_claim),
    "an effect that no task claims": ("left over", _effect_without_a_claim),
    "an effect left over from a compensated order": ("left over", _undo_forgotten),
    "a fence row that the log does not know": (
        "log",
        lambda c: replace(c, evidence=replace(c.evidence, calls=())),
    ),
    "books that the fence does not know": (
        "log",
        lambda c: replace(c, evidence=replace(c.evidence, fence={})),
    ),
    "a fence row without its entries": (
        "log",
        lambda c: replace(c, evidence=replace(c.evidence, entries=())),
    ),
    "an effect for an order that nobody made": (
        "log",
        lambda c: replace(
            c,
            evidence=_with_row(c.evidence, FenceRow("x", 1, "mail.confirm", "nobody", "barred")),
        ),
    ),
    "a mug missing from the shelf": ("stock", _books("shelf/mug", -1)),
    "a mug too many among the reserved": ("stock", _books("reserved/mug", 1)),
    "more stock at the opening": (
        "stock",
        lambda c: replace(c, evidence=replace(c.evidence, opening={"shelf/mug": 1000})),
    ),
    "a cent missing from the till": ("money", _books("till", -1)),
    "a customer's money gone": ("money", _books("wallet/grace", -100_000)),
    "a parcel that is not there": ("parcels", _books("parcel/plain", -3)),
    "a return that is not there": ("parcels", _books("returns/damaged", 1)),
    "a letter too many": ("mails", _books("letter/plain/confirmation", 1)),
    "a history with a gap": ("history", lambda c: _history_cut(c, (1, 3))),
    "a history without its end": ("history", lambda c: _history_cut(c, (1, 2))),
    "no history": ("history", lambda c: _history_cut(c, ())),
    "one task claimed for two": ("history", _task_claimed_twice),
}


def test_an_honest_day_passes(desk: Any) -> None:
    assert _audit(desk.case()) == []


@pytest.mark.parametrize(("clause", "forge"), FORGERIES.values(), ids=FORGERIES.keys())
def test_the_audit_finds(desk: Any, clause: str, forge: Callable[[Case], Case]) -> None:
    findings = _audit(forge(desk.case()))
    assert clause in {finding.clause for finding in findings}, findings


def test_every_clause_has_a_forgery_that_it_catches() -> None:
    assert {clause for clause, _ in FORGERIES.values()} == set(get_args(Clause))


def test_a_parked_step_of_unknown_outcome_may_or_may_not_have_had_its_effect(desk: Any) -> None:
    case = desk.case()
    open_steps = [
        step.model_copy(update={"status": "unknown"} if step.name == "notify" else {})
        for step in _claim(case, "plain").task.steps
    ]
    parked = {"status": "parked", "reason": "no answer", "actions": ["settle"]}
    assert _audit(_changed(case, "plain", steps=open_steps, **parked)) == []
    bounced = _step_changed(case, "bounced", "notify", status="unknown")
    assert _audit(bounced) == []


def test_a_day_without_orders_passes(desk: Any) -> None:
    nothing = Evidence({}, {}, {}, (), ())
    assert audit([], [], nothing) == []
