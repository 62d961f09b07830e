"""The orders of the demo's order desk: their form, a seeded generator, and a careful reader.

An orders file holds one JSON object a line, with the fields of `Order`:

    {"order": "O-0001", "customer": "ada", "email": "ada@mail.example", "card": "visa-4821",
     "city": "Oslo", "sku": "mug", "quantity": 2, "price_cents": 1250, "returned": false,
     "damaged": false}

Like the test cards of a payment provider, some values decide how an order fares:

    card         begins with `declined`: the credit check passes, the charge is refused
    city         `Atlantis`: no carrier goes there, so the shipment is refused
    email        ends with `@bounces.example`: the mail is refused after the parcel has gone, and
                 the task is parked in front of a person
    returned     true: once fulfilled, the order is returned and a `refund` task is submitted
    damaged      true: the returned goods fail inspection, so the refund is compensated

Stock and money run out by themselves: the shop opens with `SUPPLY_SHARE` of the units ordered of
each item, and each customer's account with `FUNDS_SHARE` of what that customer's orders cost, but
with enough for the largest single order. `generate` mixes all of this; the same seed always gives
the same orders.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from headway.agents.errors import InvalidInput
from headway.agents.messages import describe
from pydantic import BaseModel, ConfigDict, Field, ValidationError

ORDERS_DEFAULT = 300
ORDERS_MAX = 100_000
LINE_MAX_BYTES = 16_384
COMPLAINTS_MAX = 5  # lines named in one error

SUPPLY_SHARE = 0.85
FUNDS_SHARE = 0.95

DECLINED_CARD = "declined"
UNSERVED_CITY = "Atlantis"
BOUNCING_DOMAIN = "@bounces.example"

DECLINED_RATE = 0.05
UNSERVED_RATE = 0.03
BOUNCING_RATE = 0.01
RETURNED_RATE = 0.12
DAMAGED_RATE = 0.25  # of the returned ones

_NAME = r"^[A-Za-z0-9_-]{1,64}$"
_ITEMS = {  # sku: (price in cents, how popular)
    "mug": (1250, 8),
    "notebook": (890, 8),
    "poster": (1900, 5),
    "lamp": (4900, 4),
    "kettle": (6400, 3),
    "blanket": (5500, 3),
    "headphones": (12900, 2),
    "chair": (23900, 1),
}
_CUSTOMERS = (
    *("ada", "alan", "anita", "barbara", "claude", "donald", "edsger", "frances", "grace", "hedy"),
    *("john", "karen", "katherine", "ken", "lynn", "margaret", "niklaus", "radia", "shafi", "tony"),
)
_CITIES = ("Oslo", "Lisbon", "Kyoto", "Nairobi", "Quito", "Leeds", "Turin", "Perth")


class Order(BaseModel):
    """One customer's order of one item. Money is in cents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: str = Field(pattern=_NAME)
    customer: str = Field(pattern=_NAME)
    email: str = Field(min_length=3, max_length=254)
    card: str = Field(pattern=_NAME)
    city: str = Field(min_length=1, max_length=100)
    sku: str = Field(pattern=_NAME)
    quantity: int = Field(ge=1, le=1000)
    price_cents: int = Field(ge=1, le=100_000_000)
    returned: bool = False
    damaged: bool = False

    @property
    def total_cents(self) -> int:
        return self.quantity * self.price_cents


def generate(count: int, seed: int) -> list[Order]:
    """`count` orders of mixed fortunes; the same arguments always give the same orders."""
    chance = random.Random(f"orders/{seed}")  # noqa: S311 - reproducible, not secret
    return [_one(number, chance) for number in range(1, count + 1)]


def opening_stock(orders: Iterable[Order]) -> dict[str, int]:
    """Units on the shelf by item before the first order: not quite enough for all."""
    return _opening(((order.sku, order.quantity) for order in orders), SUPPLY_SHARE)


def opening_funds(orders: Iterable[Order]) -> dict[str, int]:
    """Cents in each customer's account before the first order: not quite enough for all."""
    return _opening(((order.customer, order.total_cents) for order in orders), FUNDS_SHARE)


def _opening(wanted: Iterable[tuple[str, int]], share: float) -> dict[str, int]:
    """For each name `share` of all that is wanted of it, and enough for each single wish."""
    total: Counter[str] = Counter()
    largest: dict[str, int] = {}
    for name, amount in wanted:
        total[name] += amount
        largest[name] = max(amount, largest.get(name, 0))
    return {name: max(math.ceil(share * total[name]), largest[name]) for name in total}


def read_orders(path: Path) -> list[Order]:
    """Read an orders file; InvalidInput names the lines and fields that do not fit."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InvalidInput(f"cannot read orders from {path}: {error.strerror}") from error
    orders: list[Order] = []
    complaints: list[str] = []
    first_at: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            order = _parse(line)
        except ValueError as error:
            complaints.append(f"line {number}: {error}")
            continue
        if order.order in first_at:
            complaints.append(
                f"line {number}: order {order.order!r} is on line {first_at[order.order]} already"
            )
        first_at.setdefault(order.order, number)
        orders.append(order)
    _refuse(path, complaints, len(orders))
    return orders


def write_orders(path: Path, orders: Sequence[Order]) -> None:
    """Write `orders` in the form that `read_orders` reads."""
    path.write_text("".join(f"{order.model_dump_json()}\n" for order in orders), encoding="utf-8")


def _parse(line: bytes) -> Order:
    if len(line) > LINE_MAX_BYTES:
        raise ValueError(f"longer than {LINE_MAX_BYTES} bytes")
    try:
        return Order.model_validate_json(line)
    except ValidationError as error:
        raise ValueError(describe(error)) from error


def _refuse(path: Path, complaints: list[str], count: int) -> None:
    if complaints:
        shown = "\n  ".join(complaints[:COMPLAINTS_MAX])
        more = len(complaints) - COMPLAINTS_MAX
        rest = f"\n  and {more} more" if more > 0 else ""
        raise InvalidInput(f"{path} does not hold orders:\n  {shown}{rest}")
    if not 1 <= count <= ORDERS_MAX:
        raise InvalidInput(f"{path} holds {count} orders; there must be 1 to {ORDERS_MAX}")


def _one(number: int, chance: random.Random) -> Order:
    sku = chance.choices(list(_ITEMS), [popularity for _, popularity in _ITEMS.values()])[0]
    customer = chance.choice(_CUSTOMERS)
    returned = chance.random() < RETURNED_RATE
    card = f"visa-{chance.randrange(10_000):04}"
    bounces = chance.random() < BOUNCING_RATE
    return Order(
        order=f"O-{number:04}",
        customer=customer,
        email=customer + (BOUNCING_DOMAIN if bounces else "@mail.example"),
        card=f"{DECLINED_CARD}-{card}" if chance.random() < DECLINED_RATE else card,
        city=UNSERVED_CITY if chance.random() < UNSERVED_RATE else chance.choice(_CITIES),
        sku=sku,
        quantity=chance.randint(1, 4),
        price_cents=_ITEMS[sku][0],
        returned=returned,
        damaged=returned and chance.random() < DAMAGED_RATE,
    )


def main() -> None:
    """Write generated orders to standard output: `python -m headway.demo.orders --seed 7`."""
    parser = argparse.ArgumentParser(description="Generate orders for the demo as JSON lines.")
    parser.add_argument("--count", type=int, default=ORDERS_DEFAULT, help="how many orders")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same orders")
    chosen = parser.parse_args()
    for order in generate(chosen.count, chosen.seed):
        sys.stdout.write(f"{order.model_dump_json()}\n")


if __name__ == "__main__":
    main()
