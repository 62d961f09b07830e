"""What a plain function takes and gives, by its annotations: read once, when it is declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from headway.agents.errors import DeclarationError
from pydantic import PydanticUserError, TypeAdapter

Function = Callable[..., Any]

ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


def refuse_generators(function: Function, where: str) -> None:
    """DeclarationError for a function that yields, for its result would never come."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"{where} is a generator; return its result instead of yielding")


def hints_of(function: Function, where: str) -> dict[str, Any]:
    """The annotations by parameter, resolved; `where` names the function in an error."""
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise DeclarationError(
            f"{where}: a type in its signature cannot be found ({error}); "
            "define or import it at the top of the module"
        ) from error


def adapter_of(annotation: Any, where: str, what: str) -> TypeAdapter[Any] | None:
    """What checks and converts values of this type; None if anything will do."""
    if annotation is Any:
        return None
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise DeclarationError(
            f"{where}: the type of {what} cannot be checked: {str(error).splitlines()[0]} "
            "(use a pydantic model, a dataclass, a TypedDict or plain JSON types)"
        ) from error
