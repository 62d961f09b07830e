"""One operation of the API: bytes in, a model out; whoever has operations gives a table of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from headway.coordinator.caller import Caller
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=BaseModel)


class Typed(Generic[M, R]):
    """An operation with the models of what is asked and answered."""

    def __init__(
        self, request: type[M], reply: type[R], run: Callable[[M, Caller], Awaitable[R]]
    ) -> None:
        self.request = request
        self.reply = reply
        self._run = run

    async def __call__(self, body: bytes, caller: Caller) -> R:
        """The answer; ValidationError if the body is no request, Refusal if it is not granted."""
        self.check(caller)
        return await self.run(self.parse(body, caller), caller)

    def check(self, _caller: Caller) -> None:
        """Refusal if the caller may not ask for this at all."""

    def parse(self, body: bytes, caller: Caller) -> M:
        """The request, with who sends it in place of who it says does, if that is known."""
        request = self.request.model_validate_json(body or b"{}")
        known = caller.name or caller.agent
        if known and "by" in self.request.model_fields:
            return request.model_copy(update={"by": known})
        return request

    async def run(self, request: M, caller: Caller) -> R:
        """The answer to a request that was parsed."""
        return await self._run(request, caller)


Serve: TypeAlias = Typed[Any, Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """Operations by name: what people may ask for, and what agents' workers may."""

    people: Mapping[str, Serve]
    agents: Mapping[str, Serve]


def typed(request: type[M], reply: type[R], serve: Callable[[M], Awaitable[R]]) -> Serve:
    """`serve`, with its request parsed as `request`; it answers with a `reply`."""

    async def run(asked: M, _caller: Caller) -> R:
        return await serve(asked)

    return Typed(request, reply, run)


def typed_by(request: type[M], reply: type[R], serve: Callable[[M, Caller], Awaitable[R]]) -> Serve:
    """As `typed`, for what depends on who asks."""
    return Typed(request, reply, serve)
