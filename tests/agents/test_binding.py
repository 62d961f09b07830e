"""Signatures read once, types checked at the edge."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from headway.agents.binding import EMPTY, InvalidResult, bind
from headway.agents.context import Context
from headway.agents.errors import DeclarationError, InvalidInput
from headway.agents.messages import CommandData
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict


class Order(BaseModel):
    model_config = ConfigDict(strict=True)
    id: UUID
    total: int


@dataclass
class Receipt:
    number: str


class Line(TypedDict):
    sku: str
    count: int


ORDER = {"id": "6c0a6799-fe64-5d4a-ae62-3f9d806ea12c", "total": 3}


async def charge(ctx: Context, order: Order) -> Receipt:
    return Receipt(str(order.total))


async def refund(ctx: Context, order: Order, receipt: Receipt | None) -> None: ...


def test_input_becomes_what_the_handler_declares() -> None:
    [order] = bind(charge, "charge", "action").arguments(CommandData(input=ORDER))
    assert order == Order(id=UUID(ORDER["id"]), total=3)  # type: ignore[arg-type]


def test_a_compensation_also_gets_the_result_or_none() -> None:
    binding = bind(refund, "refund", "compensation")
    known = binding.arguments(CommandData(input=ORDER, result={"number": "7"}))
    assert known[1] == Receipt("7")
    assert binding.arguments(CommandData(input=ORDER))[1] is None


def test_plain_json_passes_untouched() -> None:
    async def handler(ctx: Context, value: Any) -> Any: ...
    async def untyped(ctx, value): ...  # type: ignore[no-untyped-def]

    value = {"a": [1, 2**70]}
    assert bind(handler, "h", "action").arguments(CommandData(input=value)) == [value]
    assert bind(untyped, "h", "action").arguments(CommandData(input=value)) == [value]


def test_a_handler_may_take_nothing_but_the_context() -> None:
    async def handler(ctx: Context) -> None: ...

    assert bind(handler, "h", "compensation").arguments(CommandData(input=1, result=2)) == []


def test_typed_dicts_and_collections_are_checked_too() -> None:
    async def handler(ctx: Context, lines: list[Line]) -> None: ...

    binding = bind(handler, "h", "action")
    assert binding.arguments(CommandData(input=[{"sku": "a", "count": 1}]))
    with pytest.raises(InvalidInput, match=r"input: 0\.count: Field required"):
        binding.arguments(CommandData(input=[{"sku": "a"}]))


def test_bad_input_names_the_field_and_not_the_value() -> None:
    binding = bind(charge, "charge", "action")
    with pytest.raises(InvalidInput, match="input: total: Input should be a valid integer") as bad:
        binding.arguments(CommandData(input={**ORDER, "total": "secret"}))
    assert "secret" not in str(bad.value)


def test_a_bad_result_of_the_action_is_told_from_a_bad_input() -> None:
    binding = bind(refund, "refund", "compensation")
    with pytest.raises(InvalidInput, match="result: "):
        binding.arguments(CommandData(input=ORDER, result={"no": 1}))


def test_results_are_json_of_the_declared_type() -> None:
    assert bind(charge, "charge", "action").encode(Receipt("7")) == b'{"number":"7"}'

    async def handler(ctx: Context) -> dict[str, Any]: ...  # type: ignore[empty-body]

    encoded = bind(handler, "h", "action").encode({"a": Receipt("7"), "b": Decimal("1.5")})
    assert encoded == b'{"a":{"number":"7"},"b":"1.5"}'


@pytest.mark.parametrize("returned", [object(), {"a": lambda: 1}, 2**70, {"x": "\ud800"}])
def test_a_result_that_is_not_json_is_refused(returned: object) -> None:
    async def handler(ctx: Context) -> Any: ...

    with pytest.raises(InvalidResult, match="'h' returned something that cannot be stored"):
        bind(handler, "h", "action").encode(returned)


def test_a_result_that_holds_itself_is_refused() -> None:
    async def handler(ctx: Context) -> Any: ...

    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidResult):
        bind(handler, "h", "action").encode(circle)


def test_a_result_of_another_type_than_declared_is_refused() -> None:
    with pytest.raises(InvalidResult):
        bind(charge, "charge", "action").encode({"number": "7"})


def test_a_compensation_may_return_empty() -> None:
    assert repr(EMPTY) == "EMPTY"
    bind(refund, "refund", "compensation")


def declared(source: str) -> Any:
    names: dict[str, Any] = {"Context": Context, "Any": Any}
    exec(source, names)
    return names["h"]


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        ("async def h(): ...", "put `ctx: Context` first"),
        ("async def h(order: int): ...", "put `ctx: Context` first"),
        ("async def h(ctx, a, b, c): ...", "'c' is one too many"),
        ("async def h(ctx, *args): ...", r"instead of \*args"),
        ("async def h(ctx, **options): ...", r"instead of \*options"),
        ("async def h(ctx, *, key): ...", "'key' is one too many"),
        ("async def h(ctx): yield 1", "instead of yielding"),
        ("def h(ctx): yield 1", "instead of yielding"),
        ("async def h(ctx, order: 'Missing'): ...", "define or import it"),
        ("async def h(ctx, order: type('T', (), {})): ...", "use a pydantic model"),
    ],
)
def test_a_wrong_signature_says_what_to_mend(source: str, remedy: str) -> None:
    with pytest.raises(DeclarationError, match=remedy):
        bind(declared(source), "h", "compensation")


def test_an_action_takes_no_result() -> None:
    with pytest.raises(DeclarationError, match=r"action 'h' takes \(ctx, input\)"):
        bind(refund, "h", "action")


def test_parameters_with_defaults_are_the_handlers_own() -> None:
    bind(declared("async def h(ctx, order: int, db=None, *, retries=3): ..."), "h", "action")
