"""The ledger: each cell of its fence table, one transaction a call, and a log of every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from headway.demo.calls import Answer, Call, Outcome
from headway.demo.evidence import Evidence, read_evidence
from headway.demo.ledger import Ledger
from headway.demo.orders import Order

OPERATION = uuid4()


class Bank:
    """A ledger with ten mugs on the shelf and one operation on it after the other."""

    def __init__(self, path: Path, orders: list[Order]) -> None:
        self.path = path
        self.order = orders[0]
        self.ledger = Ledger(path, orders)

    def act(self, operation: UUID = OPERATION, **changes: Any) -> Answer:
        fields = {"action": "inventory.reserve", "order": self.order} | changes
        return self.ledger.perform(Call(operation, **fields))

    def undo(self, operation: UUID = OPERATION) -> Answer:
        return self.act(operation, undo=True)

    @property
    def evidence(self) -> Evidence:
        return read_evidence(self.path)

    def shelf(self) -> int:
        return self.evidence.balances["shelf/mug"]

    def outcomes(self) -> list[Outcome | str]:
        return [call.outcome for call in self.evidence.calls]


@pytest.fixture
def bank(tmp_path: Path, make_order: Callable[..., Order]) -> Iterator[Bank]:
    orders = [make_order("O-1", quantity=2), make_order("O-2", quantity=9)]
    bank = Bank(tmp_path / "ledger.sqlite3", orders)
    yield bank
    bank.ledger.close()


def test_an_action_is_applied_once_however_often_it_comes(bank: Bank) -> None:
    first = bank.act()
    assert first.outcome == "applied"
    for attempt in (1, 2, 3):
        assert bank.act(attempt=attempt) == Answer("duplicate", first.number)
    assert bank.shelf() == 8
    assert bank.outcomes() == ["applied", "duplicate", "duplicate", "duplicate"]


def test_different_operations_have_effects_and_receipts_of_their_own(bank: Bank) -> None:
    assert bank.act(uuid4()).number != bank.act(uuid4()).number
    assert bank.shelf() == 6


def test_undoing_restores_the_books_once(bank: Bank) -> None:
    number = bank.act().number
    assert bank.undo() == Answer("undone", number)
    assert bank.undo() == Answer("duplicate", number)
    assert bank.shelf() == 10
    assert bank.evidence.fence[str(OPERATION)].state == "undone"


def test_undoing_what_never_came_changes_nothing_and_bars_it(bank: Bank) -> None:
    assert bank.undo().outcome == "empty"
    assert bank.undo().outcome == "empty"
    assert bank.act(attempt=1).outcome == "fenced"
    assert bank.act(attempt=2).outcome == "fenced"
    assert bank.shelf() == 10
    assert bank.outcomes() == ["empty", "empty", "fenced", "fenced"]


def test_an_action_that_comes_after_it_was_undone_is_refused(bank: Bank) -> None:
    bank.act()
    bank.undo()
    assert bank.act(attempt=2).outcome == "fenced"
    assert bank.shelf() == 10


def test_a_refusal_is_repeated_for_the_same_attempt_even_if_the_reason_is_gone(bank: Bank) -> None:
    other = uuid4()
    bank.act(other, order=bank.order.model_copy(update={"quantity": 9}))
    refusal = bank.act(attempt=1)
    assert (refusal.outcome, refusal.kind) == ("refused", "OutOfStock")
    bank.ledger.perform(
        Call(other, "inventory.reserve", bank.order.model_copy(update={"quantity": 9}), undo=True)
    )
    assert bank.act(attempt=1) == refusal
    assert bank.act(attempt=2).outcome == "applied"
    assert bank.shelf() == 8


def test_undoing_what_was_refused_is_empty_and_bars_it(bank: Bank) -> None:
    greedy = bank.order.model_copy(update={"quantity": 11})
    assert bank.act(order=greedy).outcome == "refused"
    assert bank.undo().outcome == "empty"
    assert bank.act(attempt=2).outcome == "fenced"


def test_a_look_at_the_books_is_logged_and_leaves_no_fence(bank: Bank) -> None:
    assert bank.act(action="payments.check-credit").outcome == "read"
    damaged = bank.order.model_copy(update={"damaged": True})
    assert bank.act(action="warehouse.inspect", order=damaged).outcome == "refused"
    assert bank.evidence.fence == {}
    assert bank.outcomes() == ["read", "refused"]


def test_a_fault_before_anything_is_done_is_logged_and_leaves_nothing(bank: Bank) -> None:
    answer = bank.ledger.fail(Call(OPERATION, "inventory.reserve", bank.order))
    assert answer.outcome == "failed"
    assert bank.outcomes() == ["failed"]
    assert bank.act().outcome == "applied"


def test_an_effect_its_fence_row_and_its_log_line_stand_or_fall_together(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_call: Call, _answer: Answer) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(bank.ledger, "_log", broken)
    with pytest.raises(OSError, match="the disk is full"):
        bank.act()
    assert bank.shelf() == 10
    assert bank.evidence.fence == {}
    assert bank.evidence.entries == ()
    assert bank.evidence.calls == ()


def test_a_ledger_opened_again_goes_on_where_it_was(bank: Bank) -> None:
    number = bank.act().number
    bank.ledger.close()
    bank.ledger = Ledger(bank.path, [bank.order])
    assert bank.act() == Answer("duplicate", number)
    assert bank.shelf() == 8
