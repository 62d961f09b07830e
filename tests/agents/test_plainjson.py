"""JSON that can be kept: what is refused, and that nothing else is."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from headway.agents.plainjson import DEPTH_MAX, NotPlain, check_depth, encode


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, [math.nan], {"a": [None, math.inf]}]
)
def test_numbers_that_json_does_not_have_are_refused_and_do_not_become_null(value: Any) -> None:
    with pytest.raises(NotPlain, match="not finite"):
        encode(value)


def test_integers_over_64_bits_are_refused() -> None:
    with pytest.raises(NotPlain, match="64-bit"):
        encode({"a": 10**40})


def test_nesting_is_bounded_in_values_and_texts() -> None:
    assert encode(nested(DEPTH_MAX)) == orjson.dumps(nested(DEPTH_MAX))
    for depth in (DEPTH_MAX + 1, 198, 300):
        with pytest.raises(NotPlain):
            encode(nested(depth))
        with pytest.raises(NotPlain, match=f"more than {DEPTH_MAX} deep"):
            check_depth(b"[" * depth + b"]" * depth)


def test_what_merely_looks_odd_is_kept() -> None:
    for value in (
        None,
        "NaN",
        {"Infinity": None},
        "[" * 500 + '\\"{' * 500,
        [[], {}] * 500,
    ):
        assert orjson.loads(encode(value)) == value
