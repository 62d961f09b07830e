"""The shop's tickets, and what the shop knows of the orders that they are about.

An order's name says what was bought: `L-0001` is a desk lamp, whose refund is a large one, `M-0001`
a mug. So every ticket of a kind takes the same course, and each can be told from all others.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

ORDER_PATTERN = r"[LM]-[0-9]{4}"
LARGE_REFUND_CENTS = 10_000  # from here on a person has to agree


class Ticket(BaseModel):
    """What a customer wrote."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: str = Field(pattern=f"^{ORDER_PATTERN}$")
    email: str = Field(min_length=3, max_length=254)
    text: str = Field(min_length=1, max_length=10_000)


@dataclass(frozen=True, slots=True)
class Order:
    """What was sold."""

    order: str
    item: str
    price_cents: int
    delivered_days_ago: int


_ITEMS = {"L": ("desk lamp", 18_900), "M": ("mug", 1_250)}
_POLICY = {
    "damaged": "Goods that arrive damaged are refunded in full within 30 days of their delivery.",
    "regret": "Goods that are not wanted any more come back first; then they are refunded.",
}
_NO_POLICY = "There is no rule about this: apologise, and say that a person will look into it."


def ticket(number: int, kind: str = "L") -> Ticket:
    """The complaint of the `number`-th customer, whose order arrived damaged."""
    order = f"{kind}-{number:04}"
    item, _ = _ITEMS[kind]
    return Ticket(
        order=order,
        email=f"customer-{number:04}@mail.example",
        text=f"Hello, the {item} of my order {order} arrived damaged. I want my money back.",
    )


def order_of(name: str) -> Order | None:
    """What the shop knows of an order; None for one it never had."""
    if name[:1] not in _ITEMS or not name[2:].isdigit():
        return None
    item, price_cents = _ITEMS[name[:1]]
    return Order(name, item, price_cents, delivered_days_ago=3)


def policy_on(topic: str) -> str:
    """The shop's rule about `topic`, in words."""
    return _POLICY.get(topic, _NO_POLICY)
