"""The books: what moves leaves somewhere, and refusals have their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from headway.demo.books import ACTIONS, opening
from headway.demo.orders import Order


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_moves_within_one_book_and_makes_nothing_out_of_nothing(
    name: str, make_order: Callable[..., Order]
) -> None:
    sums: Counter[str] = Counter()
    for entry in ACTIONS[name].entries(make_order(quantity=3)):
        sums[entry.book] += entry.amount
    assert all(total == 0 for total in sums.values())
    assert len(sums) == (0 if ACTIONS[name].read_only else 1)


def test_the_books_open_with_goods_on_shelves_and_money_in_accounts(
    make_order: Callable[..., Order],
) -> None:
    entries = opening([make_order(quantity=2), make_order("O-2", sku="lamp", customer="grace")])
    assert {entry.account: entry.amount for entry in entries} == {
        "shelf/lamp": 1,
        "shelf/mug": 2,
        "wallet/ada": 1000,
        "wallet/grace": 500,
    }


@pytest.mark.parametrize(
    ("action", "order", "balances", "kind"),
    [
        ("inventory.reserve", {"quantity": 2}, {"shelf/mug": 1}, "OutOfStock"),
        ("inventory.reserve", {"quantity": 2}, {"shelf/mug": 2}, None),
        ("payments.check-credit", {}, {"wallet/ada": 499}, "InsufficientFunds"),
        ("payments.check-credit", {"card": "declined-1"}, {"wallet/ada": 500}, None),
        ("payments.charge", {"card": "declined-1"}, {"wallet/ada": 500}, "CardDeclined"),
        ("payments.charge", {}, {"wallet/ada": 499}, "InsufficientFunds"),
        ("payments.charge", {}, {"wallet/ada": 500}, None),
        ("warehouse.ship", {"city": "Atlantis"}, {}, "Undeliverable"),
        ("warehouse.ship", {}, {}, None),
        ("warehouse.receive", {}, {}, "NothingToReturn"),
        ("warehouse.receive", {}, {"parcel/O-1": 1}, None),
        ("warehouse.inspect", {"damaged": True, "returned": True}, {}, "Damaged"),
        ("warehouse.inspect", {"returned": True}, {}, None),
        ("mail.confirm", {"email": "x@bounces.example"}, {}, "MailBounced"),
        ("mail.credit-note", {"email": "x@mail.example"}, {}, None),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_kind(
    action: str,
    order: dict[str, Any],
    balances: dict[str, int],
    kind: str | None,
    make_order: Callable[..., Order],
) -> None:
    refusal = ACTIONS[action].refusal(make_order(**order), lambda account: balances.get(account, 0))
    assert (refusal.kind if refusal else None) == kind
