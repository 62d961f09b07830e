"""Sync handlers in threads of their own: daemons, for one that never returns must not keep the
process from ending. A thread cannot be cancelled: who waits may give up, the thread goes on."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def in_thread(
    function: Callable[[], Any], name: str, ended: Callable[[], None]
) -> asyncio.Future[Any]:
    """Run `function` in a thread; `ended` is called in the loop when it is through, always."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def conclude(value: Any, error: BaseException | None) -> None:
        if not future.done():
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)
        ended()

    def body() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = function()
        except StopIteration as stop:
            error = RuntimeError(f"StopIteration: {stop}")  # no future can hold one
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(conclude, value, error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(body,), name=name, daemon=True).start()
    return future
