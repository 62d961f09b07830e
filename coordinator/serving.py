"""One operation of the API: bytes in, a model out; whoever has operations gives a table of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from headway.coordinator.caller import Caller
from pydantic import BaseModel

Serve = Callable[[bytes, Caller], Awaitable[BaseModel]]
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Offer:
    """Operations by name: what people may ask for, and what agents' workers may."""

    people: Mapping[str, Serve]
    agents: Mapping[str, Serve]


class Typed(Generic[M]):
    """An operation whose request is one of `model`; ValidationError if it does not fit."""

    def __init__(self, model: type[M], run: Callable[[M, Caller], Awaitable[BaseModel]]) -> None:
        self.model = model
        self.run = run

    async def __call__(self, body: bytes, caller: Caller) -> BaseModel:
        return await self.run(self.parse(body, caller), caller)

    def parse(self, body: bytes, caller: Caller) -> M:
        """The request, with who sends it in place of who it says does, if that is known."""
        request = self.model.model_validate_json(body or b"{}")
        known = caller.name or caller.agent
        if known and "by" in self.model.model_fields:
            return request.model_copy(update={"by": known})
        return request


def typed(model: type[M], serve: Callable[[M], Awaitable[BaseModel]]) -> Serve:
    """`serve`, with its request parsed as `model`."""

    async def run(request: M, _caller: Caller) -> BaseModel:
        return await serve(request)

    return Typed(model, run)


def typed_by(model: type[M], serve: Callable[[M, Caller], Awaitable[BaseModel]]) -> Serve:
    """As `typed`, for what depends on who asks."""
    return Typed(model, serve)
