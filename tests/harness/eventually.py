"""Waiting for a condition with a deadline, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

POLL_S = 0.01


@overload
async def eventually(
    condition: Callable[[], Awaitable[T]], within_s: float = ..., *, what: str = ...
) -> T: ...
@overload
async def eventually(
    condition: Callable[[], T], within_s: float = ..., *, what: str = ...
) -> T: ...
async def eventually(
    condition: Callable[[], object], within_s: float = 10.0, *, what: str = "the condition"
) -> object:
    """Poll `condition`, sync or async, until it returns something true, and return that.

    An AssertionError inside it means "not yet". After `within_s` seconds fails with the last such
    error, or with the last value; `what` names what was waited for.
    """
    deadline = time.monotonic() + within_s
    while True:
        error: AssertionError | None = None
        value: object = None
        try:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
        except AssertionError as not_yet:
            error = not_yet
        if time.monotonic() > deadline:
            late = f"{what} did not come true within {within_s:g} s; last: {value!r}"
            raise error or AssertionError(late)
        await asyncio.sleep(POLL_S)
