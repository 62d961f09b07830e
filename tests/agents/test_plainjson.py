"""JSON that can be kept: what is refused, and that nothing else is."""

from __future__ import annotations

import json
import math
import random
import sys
import time
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


def test_nesting_is_told_for_any_text_and_strings_do_not_count() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed {seed}\n")
    rng = random.Random(seed)

    def value(depth: int) -> object:
        if not depth or rng.random() < 0.1:
            return rng.choice((1, "[[", '"{', '\\"[', None))
        if rng.random() < 0.5:
            return [value(depth - 1) for _ in range(rng.randrange(3))]
        odd = rng.choice(("a", "[", '"', "\\"))
        return {odd + str(n): value(depth - 1) for n in range(2)}

    def depth_of(whole: object) -> int:
        if isinstance(whole, list):
            return 1 + max(map(depth_of, whole), default=0)
        return 1 + max(map(depth_of, whole.values()), default=0) if isinstance(whole, dict) else 0

    for _ in range(500):
        made = value(rng.randrange(8))
        for limit in range(9):
            body = json.dumps(made).encode()
            if depth_of(made) > limit:
                with pytest.raises(NotPlain, match="nested more than"):
                    check_depth(body, limit)
            else:
                check_depth(body, limit)


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b'\\"' * 500_000,
        b'"' * 999_999,
        b'"' + b"\\" * 999_999,
        (b"[" * 64 + b"]" * 64) * 7_000,
    ],
)
@pytest.mark.timed
def test_no_text_makes_the_look_at_its_nesting_slow(body: bytes) -> None:
    began_at = time.process_time()
    check_depth(body + b"[" * 10 + b"]" * 10)
    assert time.process_time() - began_at < 1
