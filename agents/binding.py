"""How a handler's plain function is called: its signature, read once, and its types, checked.

Types are checked at the edge, on every call: what a handler gets is what it declares, and what
it returns is JSON that any coordinator can store.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.agents import plainjson
from headway.agents.context import Context
from headway.agents.errors import DeclarationError, HeadwayError, InvalidInput
from headway.agents.handoff import HandOff, result_type
from headway.agents.messages import CommandData, NextStep, Phase, describe
from headway.agents.signatures import ANYTHING, Function, adapter_of, hints_of, refuse_generators
from headway.agents.tools import Tool, by_name
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
    tools: Mapping[str, Tool] | None = None  # that it may call; None: it has no journal

    def arguments(self, data: CommandData) -> list[Any]:
        """What follows `ctx` in a call; InvalidInput names the field that does not fit."""
        values = (data.input, data.result)
        return [
            value if adapter is None else _check(adapter, value, what)
            for adapter, value, what in zip(self.takes, values, ("input", "result"), strict=False)
        ]

    def encode(self, returned: Any) -> bytes:
        """The result as JSON, without what is handed off; raises InvalidResult."""
        if isinstance(returned, HandOff):
            returned = returned.result
        try:
            plain = self.gives.dump_python(returned, mode="json", warnings="error")
            return plainjson.encode(plain, made_of=returned)
        except Exception as error:
            raise InvalidResult(
                f"{self.name!r} returned something that cannot be stored as JSON: "
                f"{type(error).__name__}: {error}"
            ) from error

    def next_steps(self, returned: Any) -> list[NextStep]:
        """The steps that are handed off to; raises InvalidResult."""
        if not isinstance(returned, HandOff):
            return []
        if self.phase == "compensation":
            raise InvalidResult(f"{self.name!r} is a compensation, and can hand off to nobody")
        try:
            steps = [each.to_step() for each in returned.steps]
            for each in steps:
                plainjson.encode(each.input)
        except Exception as error:
            raise InvalidResult(
                f"{self.name!r} hands off with an input that cannot be stored as JSON: "
                f"{type(error).__name__}: {error}"
            ) from error
        return steps


def bind(
    function: Function, name: str, phase: Phase, tools: Sequence[Function] | None = None
) -> Binding:
    """Read `function`'s signature; DeclarationError says what to mend."""
    where = f"{phase} {name!r}"
    is_async = inspect.iscoroutinefunction(function)
    if tools is not None and not is_async:
        raise DeclarationError(f"{where} has tools, which are awaited: make it an async def")
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
    returns = result_type(hints.get("return", Any)) if phase == "action" else Any
    return Binding(
        name,
        phase,
        function,
        is_async,
        takes,
        adapter_of(returns, where, "the return value") or ANYTHING,
        None if tools is None else by_name(tools, where),
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
        # As JSON, so that strict models fit too.
        return adapter.validator.validate_json(to_json(value))
    except ValidationError as error:
        raise InvalidInput(f"{what}: {describe(error)}") from error
