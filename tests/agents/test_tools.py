"""Tools as they are declared: every wrong declaration says how to mend it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from headway.agents import (
    DID_NOT_HAPPEN,
    Agent,
    Attempts,
    Call,
    Context,
    DeclarationError,
    Happened,
    Metered,
    tool,
)
from headway.agents.errors import InvalidInput
from headway.agents.exchange import (
    InvalidValue,
    arguments_again,
    arguments_of,
    decode_result,
    encode_result,
    shortened,
)
from headway.agents.gates import arguments_digest
from headway.agents.testing import call
from headway.agents.tools import ONCE, by_name, declared
from pydantic import BaseModel


@dataclass
class Receipt:
    number: str


class Order(BaseModel):
    total: int


@tool(recovery="natural")
async def lookup(order: str) -> Order:
    return Order(total=len(order))


@tool(recovery="dedupe_key", name="shop.pay", sensitive=True, timeout=30.0)
async def pay(call: Call, amount: int, *, note: str = "") -> Receipt:
    return Receipt(f"{amount} {call.key} {note}")


async def test_a_tool_stays_a_plain_function() -> None:
    assert await lookup("o-1") == Order(total=3)
    assert await pay(call(key="refund"), 7) == Receipt("7 refund ")
    assert declared(pay).name == "shop.pay"


def test_how_often_a_tool_is_tried_follows_from_how_it_recovers() -> None:
    assert declared(lookup).retry == Attempts(maximum_attempts=3)
    assert declared(pay).retry == ONCE
    assert ONCE.allows(1) is False
    assert Attempts(maximum_attempts=0).allows(10**9)
    policy = Attempts(initial_interval=1, backoff_coefficient=3, maximum_interval=5)
    assert [policy.delay_s(tries) for tries in (1, 2, 3, 10**6)] == [1, 3, 5, 5]


def test_a_tool_that_needs_approval_is_sensitive() -> None:
    @tool(recovery="natural", requires_approval=True)
    def drop() -> None: ...

    assert declared(drop).sensitive


def whatever(amount: int) -> int:
    return amount


@pytest.mark.parametrize(
    ("options", "function", "words"),
    [
        (
            {},
            whatever,
            "tool 'whatever': recovery= must say what is done about a call of which nobody knows "
            'whether it happened. "natural": running it again does no harm; "dedupe_key": it hands '
            "on call.id, and whoever gets that does the same thing only once; "
            '"check": check= is a function that finds out whether it happened; '
            '"manual": a person says whether it happened',
        ),
        ({"recovery": "sometimes"}, whatever, "recovery= must say"),
        ({"recovery": "natural", "name": "a b"}, whatever, "use 1 to 64 of A-Z a-z 0-9 _ . and -"),
        (
            {"recovery": "check"},
            whatever,
            "tool 'whatever': recovery=\"check\" needs check=, a function to ask",
        ),
        (
            {"recovery": "natural", "check": whatever},
            whatever,
            "tool 'whatever': check= is for recovery=\"check\" only",
        ),
        (
            {"recovery": "dedupe_key"},
            whatever,
            "tool 'whatever': recovery=\"dedupe_key\" needs a first parameter `call: Call`, whose "
            "id the tool hands on",
        ),
        (
            {"recovery": "natural", "sensitive": True, "redeems": True},
            whatever,
            "redeems= is for a sensitive tool with a first parameter `call: Call`, whose token it",
        ),
        ({"recovery": "natural", "timeout": 0}, whatever, "timeout must be more than 0 seconds"),
        ({"recovery": "natural", "result_limit": 0}, whatever, "result_limit must be from 1 to"),
        (
            {"recovery": "natural", "result_limit": 10},
            whatever,
            "only a str can be shortened by itself; give truncate=",
        ),
        ({"recovery": "natural", "truncate": str}, whatever, "truncate= needs result_limit="),
        ({"recovery": "natural"}, whatever.__str__, "cannot be marked; wrap it in a function"),
    ],
)
def test_a_wrong_declaration_says_how_to_mend_it(
    options: dict[str, Any], function: Any, words: str
) -> None:
    if function is not whatever:
        options = {"name": "text", **options}
    with pytest.raises(DeclarationError, match=re.escape(words)):
        tool(**options)(function)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def t(a: int, call: Call): ...", "put 'call', which is the Call, first"),
        ("def t(key: str): ...", "ctx.call takes key= itself; rename that parameter"),
        ("def t(a: 'Missing'): ...", "define or import it"),
        ("def t(a: type('T', (), {})): ...", "use a pydantic model"),
        ("def t(): yield 1", "return its result instead of yielding"),
        ("async def t(): yield 1", "return its result instead of yielding"),
    ],
)
def test_a_wrong_signature_says_how_to_mend_it(source: str, words: str) -> None:
    names: dict[str, Any] = {"Call": Call}
    exec(source, names)
    with pytest.raises(DeclarationError, match=re.escape(words)):
        tool(recovery="natural")(names["t"])


def test_brackets_are_asked_for() -> None:
    with pytest.raises(DeclarationError, match=re.escape('write @tool(recovery="…") above')):
        tool(whatever)  # type: ignore[type-var]


def test_only_tools_can_be_listed_and_each_name_once() -> None:
    with pytest.raises(DeclarationError, match="'whatever' is not a tool; put @tool"):
        by_name([whatever], "action 'a'")

    @tool(recovery="natural", name="shop.pay")
    def another() -> None: ...

    with pytest.raises(DeclarationError, match="action 'a' has two tools of one name"):
        by_name([pay, another], "action 'a'")

    def around(*args: Any) -> Any: ...

    around.__dict__.update(pay.__dict__)
    with pytest.raises(DeclarationError, match=re.escape("put @tool(…) above its other decor")):
        declared(around)


def test_tools_are_for_handlers_that_can_await_them() -> None:
    with pytest.raises(DeclarationError, match="action 'a' has tools, which are awaited"):

        @Agent("shop").action("a", tools=[lookup])
        def handler(ctx: Context) -> None: ...


def test_arguments_are_json_by_name_however_they_were_given() -> None:
    by_place = arguments_of(declared(pay), (7,), {})
    by_word = arguments_of(declared(pay), (), {"amount": 7})
    assert by_place.named == by_word.named == {"amount": 7}
    assert by_place.digest == by_word.digest == arguments_digest((), {"amount": 7})
    noted = arguments_of(declared(pay), (7,), {"note": "x"})
    assert noted.named == {"amount": 7, "note": "x"}
    again = arguments_again(declared(pay), noted.named)
    assert (again.bound.args, again.bound.kwargs) == ((7,), {"note": "x"})


def test_arguments_of_any_number_come_back() -> None:
    @tool(recovery="natural")
    def total(first: Order, *others: Order, **more: Order) -> int:
        return 0

    made = arguments_of(declared(total), (Order(total=1), Order(total=2)), {"x": Order(total=3)})
    assert made.named == {
        "first": {"total": 1},
        "others": [{"total": 2}],
        "more": {"x": {"total": 3}},
    }
    again = arguments_again(declared(total), made.named)
    assert again.bound == made.bound
    assert again.digest == made.digest


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "tool 'shop.pay': missing a required argument: 'amount'"),
        ((1, 2), {}, "tool 'shop.pay': too many positional arguments"),
        (("x",), {}, "tool 'shop.pay': argument 'amount' cannot be written as JSON of its type"),
        ((1,), {"extra": 1}, "tool 'shop.pay': got an unexpected keyword argument 'extra'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: Any, kwargs: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(words)):
        arguments_of(declared(pay), args, kwargs)


def test_sets_are_refused_as_arguments_since_their_order_changes() -> None:
    @tool(recovery="natural")
    def tag(names: list[set[str]]) -> None: ...

    with pytest.raises(InvalidInput, match="a set has no order that is the same in every process"):
        arguments_of(declared(tag), ([{"a", "b"}],), {})


def test_journaled_arguments_that_no_longer_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="argument 'amount' does not fit any more"):
        arguments_again(declared(pay), {"amount": "x"})
    with pytest.raises(InvalidInput, match="takes no colour any more"):
        arguments_again(declared(pay), {"amount": 1, "colour": "red"})


def test_results_are_json_of_the_declared_type() -> None:
    @tool(recovery="natural", model=True)
    async def ask() -> Metered[Order]: ...  # type: ignore[empty-body]

    assert encode_result(declared(ask), Metered(Order(total=1), input_tokens=9)) == b'{"total":1}'
    assert decode_result(declared(ask), b'{"total":1}') == Order(total=1)
    with pytest.raises(InvalidValue, match="tool 'ask' returned something that cannot be kept"):
        encode_result(declared(ask), object())
    with pytest.raises(InvalidInput, match="the result of tool 'ask': total: "):
        decode_result(declared(ask), b'{"total":"x"}')


@pytest.mark.parametrize("text", ["x" * 1000, '"\n' * 500, "ä€😀" * 300])
def test_a_long_text_is_shortened_to_the_limit_and_says_so(text: str) -> None:
    @tool(recovery="natural", result_limit=300)
    def read() -> str: ...  # type: ignore[empty-body]

    body = encode_result(declared(read), text)
    short = shortened(declared(read), body, "task.abc")
    assert len(short) <= 300
    beginning, _, end = decode_result(declared(read), short).rpartition("\n")
    assert text.startswith(beginning)
    assert len(beginning) > 20
    assert end == f"[shortened: {len(body)} bytes in all, kept as task.abc]"


def test_other_results_are_shortened_by_the_tool() -> None:
    @tool(recovery="natural", result_limit=20, truncate=lambda rows: rows[:2])
    def rows() -> list[int]: ...  # type: ignore[empty-body]

    body = encode_result(declared(rows), list(range(1000)))
    assert shortened(declared(rows), body, "ref") == b"[0,1]"

    @tool(recovery="natural", result_limit=20, truncate=lambda rows: rows)
    def stubborn() -> list[int]: ...  # type: ignore[empty-body]

    with pytest.raises(InvalidValue, match="more than its result_limit of 20"):
        shortened(declared(stubborn), body, "ref")


def test_a_check_has_three_answers() -> None:
    assert Happened(1).result == 1
    assert DID_NOT_HAPPEN.value == "did not happen"
