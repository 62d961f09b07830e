"""An agent as code: a name, and the handlers of its actions and compensations.

    payments = Agent("payments")

    @payments.action("charge")                   # a saga names it "payments.charge"
    async def charge(ctx: Context, order: Order) -> Receipt: ...

    @payments.compensation("refund")             # a saga names it compensate="payments.refund"
    async def refund(ctx: Context, order: Order, receipt: Receipt | None) -> None: ...

    @payments.action("settle", tools=[lookup_order, pay])     # what `ctx.call` may call
    async def settle(ctx: Context, order: str) -> Receipt: ...

Decorators return the function unchanged, so a test calls it like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from headway.agents.binding import Binding, bind
from headway.agents.errors import DeclarationError
from headway.agents.messages import Phase
from headway.agents.signatures import Function
from headway.agents.subjects import SubjectError, token

F = TypeVar("F", bound=Function)


class Agent:
    """A named set of handlers. Any number of processes may run the same agent."""

    def __init__(self, name: str) -> None:
        self.name = _named(name, "agent")
        self.handlers: dict[str, Binding] = {}

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, handlers={sorted(self.handlers)})"

    def action(self, name: str, *, tools: Sequence[Function] | None = None) -> Callable[[F], F]:
        """Declare the handler of an action: `(ctx, input) -> result`.

        With `tools` (an empty list, if it calls none) it has a journal: `ctx.call`,
        `ctx.checkpoint`, `ctx.restore` and `ctx.note`.
        """
        return self._declare(name, "action", tools)

    def compensation(
        self, name: str, *, tools: Sequence[Function] | None = None
    ) -> Callable[[F], F]:
        """Declare the handler that undoes an action: `(ctx, input, result of the action)`.

        It may be called though the action never happened (`ctx.outcome_unknown`, result None):
        then it undoes what it finds, or returns EMPTY if that is nothing.
        """
        return self._declare(name, "compensation", tools)

    def _declare(
        self, name: str, phase: Phase, tools: Sequence[Function] | None
    ) -> Callable[[F], F]:
        if not isinstance(name, str):
            raise DeclarationError(
                f'agent {self.name!r}: write @{self.name}.{phase}("name"), with a name in brackets'
            )
        _named(name, f"agent {self.name!r}: {phase}")
        if name in self.handlers:
            raise DeclarationError(
                f"agent {self.name!r} has two handlers named {name!r}; rename one "
                "(actions and compensations share their names)"
            )

        def declare(function: F) -> F:
            self.handlers[name] = bind(function, name, phase, tools)
            return function

        return declare


def _named(name: str, what: str) -> str:
    try:
        return token(name)
    except SubjectError as error:
        raise DeclarationError(f"{what} {name!r}: {error}") from error
