"""For tests of handlers: a valid context, and a call as a worker would make it, all offline.

Handlers stay plain functions, so `await charge(context(), order)` is a test already. `run` also
checks and converts the input as a worker does, and gives back the JSON that would be stored.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import orjson
from headway.agents.binding import EMPTY, Binding, bind
from headway.agents.context import Context
from headway.agents.identity import new_task_id
from headway.agents.messages import CommandData
from headway.agents.signatures import Function

_DEFAULT = Context(
    task=new_task_id(),
    saga="test",
    step="step",
    phase="action",
    attempt=1,
    epoch=0,
    agent="test",
    traceparent="00-00000000000000000000000000000001-0000000000000001-01",
)


def context(**changes: Any) -> Context:
    """A context of a fresh task's first attempt, with `changes` to any of its fields."""
    fresh: dict[str, Any] = {"task": new_task_id(), "results": {}, "cancellation": asyncio.Event()}
    return replace(_DEFAULT, **(fresh | changes))


async def run(
    handler: Function | Binding,
    input: Any = None,
    *,
    result: Any = None,
    ctx: Context | None = None,
) -> Any:
    """Call `handler` as a worker would with a JSON `input`, and return the JSON it results in.

    `handler` is the function itself or `agent.handlers["name"]`; give a compensation the
    action's `result`. Raises InvalidInput and InvalidResult where a worker would report them,
    and whatever the handler raises. EMPTY comes back as it is.
    """
    binding = handler if isinstance(handler, Binding) else _bound(handler)
    ctx = ctx or context(input=input, phase=binding.phase)
    arguments = binding.arguments(CommandData(input=input, result=result))
    if binding.is_async:
        returned = await binding.function(ctx, *arguments)
    else:
        returned = await asyncio.to_thread(binding.function, ctx, *arguments)
    return EMPTY if returned is EMPTY else orjson.loads(binding.encode(returned))


def _bound(function: Function) -> Binding:
    return bind(function, getattr(function, "__name__", "handler"), "compensation")
