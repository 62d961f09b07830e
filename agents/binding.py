"""How a handler's plain function is called: its signature, read once, and its types, checked.

Types are checked at the edge, on every call: what a handler gets is what it declares, and what
it returns is JSON that any coordinator can store.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from headway.agents import plainjson
from headway.agents.context import Context
from headway.agents.errors import DeclarationError, HeadwayError, InvalidInput
from headway.agents.messages import CommandData, Phase, describe
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_json

Function = Callable[..., Any]

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
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"{where} is a generator; return its result instead of yielding")
    parameters = _parameters(function, where, phase)
    hints = _hints(function, where)
    if hints.get(parameters[0].name, Context) not in (Context, Any):
        raise DeclarationError(
            f"{where}: its first parameter is {parameters[0].name!r}; put `ctx: Context` first"
        )
    takes = tuple(_adapter(hints.get(each.name, Any), where, each.name) for each in parameters[1:])
    returns = hints.get("return", Any) if phase == "action" else Any
    return Binding(
        name,
        phase,
        function,
        inspect.iscoroutinefunction(function),
        takes,
        _adapter(returns, where, "the return value") or TypeAdapter(Any),
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


def _hints(function: Function, where: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise DeclarationError(
            f"{where}: a type in its signature cannot be found ({error}); "
            "define or import it at the top of the module"
        ) from error


def _adapter(annotation: Any, where: str, what: str) -> TypeAdapter[Any] | None:
    if annotation is Any:
        return None
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise DeclarationError(
            f"{where}: the type of {what} cannot be checked: {str(error).splitlines()[0]} "
            "(use a pydantic model, a dataclass, a TypedDict or plain JSON types)"
        ) from error


def _check(adapter: TypeAdapter[Any], value: Any, what: str) -> Any:
    try:
        return adapter.validate_json(to_json(value))  # as JSON, so that strict models fit too
    except ValidationError as error:
        raise InvalidInput(f"{what}: {describe(error)}") from error
