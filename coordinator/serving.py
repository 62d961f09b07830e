"""One operation of the API: bytes in, a model out; whoever has operations gives a table of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from headway.coordinator.caller import Caller
from pydantic import BaseModel

Serve = Callable[[bytes, Caller], Awaitable[BaseModel]]
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Offer:
    """Operations by name: what people may ask for, and what agents' workers may."""

    people: Mapping[str, Serve]
    agents: Mapping[str, Serve]


def typed(model: type[M], serve: Callable[[M], Awaitable[BaseModel]]) -> Serve:
    """`serve`, with its request parsed as `model`; ValidationError if it does not fit."""

    async def parsed(body: bytes, _caller: Caller) -> BaseModel:
        return await serve(model.model_validate_json(body or b"{}"))

    return parsed


def typed_by(model: type[M], serve: Callable[[M, Caller], Awaitable[BaseModel]]) -> Serve:
    """As `typed`, for what depends on who asks."""

    async def parsed(body: bytes, caller: Caller) -> BaseModel:
        return await serve(model.model_validate_json(body or b"{}"), caller)

    return parsed
