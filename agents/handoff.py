"""Handing off: an action's result that also says which steps come next.

    return HandOff(result, Next("billing.refund", compensate="billing.undo", input={"order": 7}))

The steps are appended to the running plan, behind the action's own, within the task's manifest.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

from headway.agents.messages import NextStep
from headway.agents.signatures import ANYTHING

T = TypeVar("T")


class Next:
    """A step for `action` ("agent.action"). Without a `name` it gets one made from its action;
    without an `input`, the task's own. `read_only`: it needs no compensation."""

    __slots__ = ("action", "compensate", "input", "name", "read_only")

    def __init__(
        self,
        action: str,
        *,
        name: str = "",
        compensate: str | None = None,
        read_only: bool = False,
        input: Any = None,
    ) -> None:
        self.action = action
        self.name = name
        self.compensate = compensate
        self.read_only = read_only
        self.input = input

    def to_step(self) -> NextStep:
        """As it travels; raises what pydantic raises if the input cannot be written as JSON."""
        plain = ANYTHING.dump_python(self.input, mode="json", warnings="error")
        return NextStep(self.action, self.name, self.compensate, self.read_only, plain)


class HandOff(Generic[T]):
    """Returned by an action that has `result`, and other steps for the task to go on with."""

    __slots__ = ("result", "steps")

    def __init__(self, result: T, *steps: Next) -> None:
        self.result = result
        self.steps = steps


def result_type(returns: Any) -> Any:
    """Of what type the result is, in an action that is annotated to return this."""
    if returns is HandOff:
        return Any
    if get_origin(returns) is HandOff:
        return get_args(returns)[0]
    if get_origin(returns) in (Union, UnionType):
        return Union[tuple(result_type(each) for each in get_args(returns))]  # noqa: UP007
    return returns
