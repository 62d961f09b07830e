"""Letting people's requests in: who asks, by their token, and what that one may ask for.

Always holds: what a request says about its sender counts only where no token says it. A task that
is not the caller's own answers as one that does not exist. Role `view` sees no payload.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from headway.coordinator.caller import Caller
from headway.coordinator.errors import Refusal
from headway.coordinator.masking import masked
from headway.coordinator.roles import NEEDS, OPERATE, SUBMIT, VIEW, Need
from headway.coordinator.serving import Offer, Serve, Typed
from headway.coordinator.tokens import Tokens

OwnerOf = Callable[[UUID], Awaitable[str | None]]
"""The owner of a task; None: there is no such task."""


UNDECIDED = Need(OPERATE)  # of an operation that the table does not have


class Access:
    def __init__(self, tokens: Tokens, owner_of: OwnerOf) -> None:
        self._tokens = tokens
        self._owner_of = owner_of

    async def caller(self, operation: str, token: str) -> Caller:
        """Who presents this token; Refusal (401) if one is needed and it is none that is good."""
        if not NEEDS.get(operation, UNDECIDED).role:
            return Caller()
        if not self._tokens.can_tell(token):
            await self._tokens.learn(token)
        return self._tokens.caller(token)

    def guarded(self, offer: Offer) -> Offer:
        """The same operations, each for those only who may ask for it."""
        people = {
            name: Guarded(name, NEEDS.get(name, UNDECIDED), serve, self._owner_of)
            for name, serve in offer.people.items()
        }
        return Offer(people, offer.agents)


class Guarded(Typed[Any, Any]):
    """An operation for those only whose role is enough; `submit` is held to its own tasks."""

    def __init__(self, operation: str, need: Need, inner: Serve, owner_of: OwnerOf) -> None:
        super().__init__(inner.request, inner.reply, inner.run)
        self._operation = operation
        self._need = need
        self._owner_of = owner_of

    def check(self, caller: Caller) -> None:
        if caller.role:
            check_role(self._operation, self._need, caller)

    async def run(self, request: Any, caller: Caller) -> Any:
        if caller.role == SUBMIT and self._need.own:
            request = await self._own(request, caller)
        answer = await super().run(request, caller)
        return masked(answer) if caller.role == VIEW else answer

    async def _own(self, request: Any, caller: Caller) -> Any:
        """The request, held to the caller's own tasks."""
        match self._need.own:
            case "owner":
                return request.model_copy(update={"owner": caller.name})
            case "task":
                if request.task is None:
                    raise Refusal(f"role {caller.role!r} must name one of its own tasks", 403)
                if await self._owner_of(request.task) != caller.name:
                    raise Refusal(f"there is no task {request.task}", 404)
        return request


def check_role(operation: str, need: Need, caller: Caller) -> None:
    """Refusal (403) if the caller's role is not enough."""
    if not need.is_met_by(caller.role):
        raise Refusal(
            f"token {caller.name!r} has role {caller.role!r}; {operation!r} needs {need}",
            403,
        )
