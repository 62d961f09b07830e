"""Orders: the same seed gives the same mixed lot, and a bad file is refused line by line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from headway.agents.errors import InvalidInput
from headway.demo.orders import (
    LINE_MAX_BYTES,
    Order,
    generate,
    opening_funds,
    opening_stock,
    read_orders,
    write_orders,
)


def test_a_seed_gives_the_same_orders_each_time_and_others_than_another_seed() -> None:
    assert generate(300, 7) == generate(300, 7)
    assert generate(300, 7) != generate(300, 8)


def test_orders_are_numbered_apart() -> None:
    assert len({order.order for order in generate(300, 1)}) == 300


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_default_lot_has_fortunes_of_every_kind(seed: int) -> None:
    orders = generate(300, seed)
    kinds: dict[str, Callable[[Order], bool]] = {
        "declined": lambda order: order.card.startswith("declined"),
        "unserved": lambda order: order.city == "Atlantis",
        "returned": lambda order: order.returned and not order.damaged,
        "damaged": lambda order: order.damaged,
    }
    for kind, fits in kinds.items():
        assert 1 <= sum(map(fits, orders)) < 100, (kind, seed)
    bouncing = sum(order.email.endswith("@bounces.example") for order in orders)
    assert bouncing < 10, f"parked orders are rare, but there are {bouncing} (seed {seed})"


def test_stock_and_funds_fall_short_of_what_is_ordered() -> None:
    orders = generate(300, 1)
    wanted = sum(order.quantity for order in orders)
    cost = sum(order.total_cents for order in orders)
    assert 0.8 * wanted < sum(opening_stock(orders).values()) < 0.9 * wanted
    assert 0.9 * cost < sum(opening_funds(orders).values()) < cost


def test_an_order_that_is_alone_of_its_kind_can_be_filled_and_paid() -> None:
    order = generate(1, 1)[0]
    assert opening_stock([order]) == {order.sku: order.quantity}
    assert opening_funds([order]) == {order.customer: order.total_cents}


def test_orders_come_back_from_a_file_as_they_were_written(tmp_path: Path) -> None:
    orders = generate(20, 3)
    write_orders(tmp_path / "orders.jsonl", orders)
    assert read_orders(tmp_path / "orders.jsonl") == orders


def test_blank_lines_do_no_harm(tmp_path: Path) -> None:
    (order,) = generate(1, 1)
    path = tmp_path / "orders.jsonl"
    path.write_text(f"\n{order.model_dump_json()}\n\n")
    assert read_orders(path) == [order]


def test_the_script_writes_what_the_reader_reads(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "headway.demo.orders", "--count", "5", "--seed", "9"]
    written = subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "orders.jsonl").write_bytes(written.stdout)
    assert read_orders(tmp_path / "orders.jsonl") == generate(5, 9)


def _complaint(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as refused:
        read_orders(path)
    return str(refused.value)


def test_a_bad_file_is_refused_with_line_numbers_and_fields(tmp_path: Path) -> None:
    good = generate(1, 1)[0].model_dump_json()
    lines = [good, "{not json", good.replace('"quantity":', '"quantity":-'), good]
    complaint = _complaint(tmp_path / "bad.jsonl", "\n".join(lines).encode())
    assert "line 2: body: Invalid JSON" in complaint
    assert "line 3: quantity: " in complaint
    assert "line 4: order 'O-0001' is on line 1 already" in complaint


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "holds 0 orders"),
        (b"\xff\xfe{}", "line 1: body: Invalid JSON"),
        (b"[]", "line 1: body: "),
        (b"{}", "line 1: order: Field required"),
        (b"{" + b" " * LINE_MAX_BYTES + b"}", f"line 1: longer than {LINE_MAX_BYTES} bytes"),
        (b"{}\n" * 12, "and 7 more"),
    ],
)
def test_what_is_not_an_orders_file_is_refused(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    assert expected in _complaint(tmp_path / "bad.jsonl", content)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_orders(tmp_path / "nowhere.jsonl")
