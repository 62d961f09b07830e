"""The shop's double-entry books: what each action moves, and when it is refused.

Three books hold everything: goods (units), money (cents) and mail (letters). An action that
takes effect moves an amount between two accounts of one book, so each book's accounts always sum
to what they opened with. Pure: the downstream service applies these rules, the audit checks by
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from headway.demo.orders import (
    BOUNCING_DOMAIN,
    DECLINED_CARD,
    UNSERVED_CITY,
    Order,
    opening_funds,
    opening_stock,
)

Book = Literal["goods", "money", "mail"]
BalanceOf = Callable[[str], int]

TILL = "till"
POST_OFFICE = "post-office"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a book: `amount` is added to `account`."""

    book: Book
    account: str
    amount: int

    def reversed(self) -> Entry:
        return Entry(self.book, self.account, -self.amount)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A business reason not to do something, such as a declined card."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Action:
    """What one action does. One without `entries` only looks."""

    entries: Callable[[Order], tuple[Entry, ...]] = lambda _order: ()
    refusal: Callable[[Order, BalanceOf], Refusal | None] = lambda _order, _balance_of: None
    read_only: bool = False


def shelf(order: Order) -> str:
    return f"shelf/{order.sku}"


def reserved(order: Order) -> str:
    return f"reserved/{order.sku}"


def parcel(order: Order) -> str:
    return f"parcel/{order.order}"


def returns(order: Order) -> str:
    return f"returns/{order.order}"


def wallet(order: Order) -> str:
    return f"wallet/{order.customer}"


def letter(order: Order, topic: str) -> str:
    return f"letter/{order.order}/{topic}"


def opening(orders: Iterable[Order]) -> list[Entry]:
    """What the books hold before the first order."""
    known = list(orders)
    goods = [
        Entry("goods", f"shelf/{sku}", units) for sku, units in sorted(opening_stock(known).items())
    ]
    money = [
        Entry("money", f"wallet/{customer}", cents)
        for customer, cents in sorted(opening_funds(known).items())
    ]
    return goods + money


def _move_goods(
    source: Callable[[Order], str], target: Callable[[Order], str]
) -> Callable[[Order], tuple[Entry, ...]]:
    return lambda order: (
        Entry("goods", source(order), -order.quantity),
        Entry("goods", target(order), order.quantity),
    )


def _move_money(
    source: Callable[[Order], str], target: Callable[[Order], str]
) -> Callable[[Order], tuple[Entry, ...]]:
    return lambda order: (
        Entry("money", source(order), -order.total_cents),
        Entry("money", target(order), order.total_cents),
    )


def _post(topic: str) -> Callable[[Order], tuple[Entry, ...]]:
    return lambda order: (
        Entry("mail", POST_OFFICE, -1),
        Entry("mail", letter(order, topic), 1),
    )


def _till(_order: Order) -> str:
    return TILL


def _short_of_stock(order: Order, balance_of: BalanceOf) -> Refusal | None:
    left = balance_of(shelf(order))
    if left >= order.quantity:
        return None
    return Refusal("OutOfStock", f"{order.quantity} {order.sku} wanted, {left} left")


def _short_of_funds(order: Order, balance_of: BalanceOf) -> Refusal | None:
    if balance_of(wallet(order)) >= order.total_cents:
        return None
    return Refusal("InsufficientFunds", f"the account of {order.customer} does not cover it")


def _card_refused(order: Order, balance_of: BalanceOf) -> Refusal | None:
    if order.card.startswith(DECLINED_CARD):
        return Refusal("CardDeclined", f"the bank declined card {order.card}")
    return _short_of_funds(order, balance_of)


def _unserved(order: Order, _balance_of: BalanceOf) -> Refusal | None:
    if order.city != UNSERVED_CITY:
        return None
    return Refusal("Undeliverable", f"no carrier goes to {order.city}")


def _not_with_customer(order: Order, balance_of: BalanceOf) -> Refusal | None:
    if balance_of(parcel(order)) >= order.quantity:
        return None
    return Refusal("NothingToReturn", f"the goods of {order.order} are not with the customer")


def _damaged(order: Order, _balance_of: BalanceOf) -> Refusal | None:
    return Refusal("Damaged", "the goods came back damaged") if order.damaged else None


def _bounces(order: Order, _balance_of: BalanceOf) -> Refusal | None:
    if not order.email.endswith(BOUNCING_DOMAIN):
        return None
    return Refusal("MailBounced", f"there is no mailbox {order.email}")


ACTIONS: dict[str, Action] = {
    "inventory.reserve": Action(_move_goods(shelf, reserved), _short_of_stock),
    "inventory.restock": Action(_move_goods(returns, shelf)),
    "payments.check-credit": Action(refusal=_short_of_funds, read_only=True),
    "payments.charge": Action(_move_money(wallet, _till), _card_refused),
    "payments.pay-back": Action(_move_money(_till, wallet)),
    "warehouse.ship": Action(_move_goods(reserved, parcel), _unserved),
    "warehouse.receive": Action(_move_goods(parcel, returns), _not_with_customer),
    "warehouse.inspect": Action(refusal=_damaged, read_only=True),
    "mail.confirm": Action(_post("confirmation"), _bounces),
    "mail.credit-note": Action(_post("credit-note"), _bounces),
}
