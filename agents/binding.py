"""How a handler's plain function is called: its signature, read once, and its types, checked.

Types are checked at the edge, on every call: what a handler gets is what it declares, and what
it returns is JSON that any coordinator can store.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Final

from headway.agents import plainjson
from headway.agents.context import Context
from headway.agents.errors import DeclarationError, HeadwayError, InvalidInput
from headway.agents.messages import CommandData, Phase, describe
from headway.agents.signatures import ANYTHING, Function, adapter_of, hints_of, refuse_generators
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_WANTED: dict[Phase, tuple[str, ...]] = {
    "action": ("ctx", "input"),
    "compensation": ("ctx", "input", "result"),
}


class Empty:
    """The type of EMPTY."""

    def __repr__(self) -> str:
        return "EMPTY"


EMPTY: Final = Empty()
"""Returned by a compensation that found nothing to undo."""


class InvalidResult(HeadwayError):
    """What a handler returned cannot be written as JSON, or is not what it declares."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A handler and how to call it."""

    name: str
    phase: Phase
    function: Function
    is_async: bool
    takes: tuple[TypeAdapter[Any] | None, ...]  # of the input and the action's result, if declared
    gives: TypeAdapter[Any]

    def arguments(self, data: CommandData) -> list[Any]:
        """What follows `ctx` in a call; InvalidInput names the field that does not fit."""
        values = (data.input, data.result)
        return [
            value if adapter is None else _check(adapter, value, what)
            for adapter, value, what in zip(self.takes, values, ("input", "result"), strict=False)
        ]

    def encode(self, returned: Any) -> bytes:
        """The result as JSON; raises InvalidResult."""
        try:
            plain = self.gives.dump_python(returned, mode="json", warnings="error")
            return plainjson.encode(plain, made_of=returned)
        except Exception as error:
            raise InvalidResult(
                f"{self.name!r} returned something that cannot be stored as JSON: "
                f"{type(error).__name__}: {error}"
            ) from error


def bind(function: Function, name: str, phase: Phase) -> Binding:
    """Read `function`'s signature; DeclarationError says what to mend."""
    where = f"{phase} {name!r}"
    refuse_generators(function, where)
    parameters = _parameters(function, where, phase)
    hints = hints_of(function, where)
    if hints.get(parameters[0].name, Context) not in (Context, Any):
        raise DeclarationError(
            f"{where}: its first parameter is {parameters[0].name!r}; put `ctx: Context` first"
        )
    takes = tuple(
        adapter_of(hints.get(each.name, Any), where, each.name) for each in parameters[1:]
    )
    returns = hints.get("return", Any) if phase == "action" else Any
    return Binding(
        name,
        phase,
        function,
        inspect.iscoroutinefunction(function),
        takes,
        adapter_of(returns, where, "the return value") or ANYTHING,
    )


def _parameters(function: Function, where: str, phase: Phase) -> list[inspect.Parameter]:
    """The parameters that are filled in by position, `ctx` first."""
    wanted = _WANTED[phase]
    shape = f"{where} takes ({', '.join(wanted)}); all but ctx may be left out"
    filled: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        required = parameter.default is parameter.empty
        if parameter.kind in _POSITIONAL and len(filled) < len(wanted) and required:
            filled.append(parameter)
        elif parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.VAR_KEYWORD:
            raise DeclarationError(f"{shape}; name the parameters instead of *{parameter.name}")
        elif required:
            raise DeclarationError(f"{shape}; {parameter.name!r} is one too many")
    if not filled:
        raise DeclarationError(f"{shape}; put `ctx: Context` first")
    return filled


def _check(adapter: TypeAdapter[Any], value: Any, what: str) -> Any:
    try:
        return adapter.validate_json(to_json(value))  # as JSON, so that strict models fit too
    except ValidationError as error:
        raise InvalidInput(f"{what}: {describe(error)}") from error
