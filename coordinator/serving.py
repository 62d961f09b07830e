"""One operation of the API: bytes in, a model out; whoever has operations gives a table of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel

Serve = Callable[[bytes], Awaitable[BaseModel]]
M = TypeVar("M", bound=BaseModel)


def typed(model: type[M], serve: Callable[[M], Awaitable[BaseModel]]) -> Serve:
    """`serve`, with its request parsed as `model`; ValidationError if it does not fit."""

    async def parsed(body: bytes) -> BaseModel:
        return await serve(model.model_validate_json(body or b"{}"))

    return parsed
