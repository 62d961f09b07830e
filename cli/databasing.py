"""Commands that work on the database itself, and not through a coordinator."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from headway.agents.api import error_of
from headway.agents.errors import Unavailable
from headway.cli.addresses import POSTGRES_URL
from headway.cli.failures import BadInput
from headway.cli.terminal import Terminal
from headway.coordinator.errors import Refusal, StoreRefused, StoreUnavailable

D = TypeVar("D")
T = TypeVar("T")


def in_database(
    terminal: Terminal,
    postgres_url: str | None,
    opened: Callable[[str], AbstractAsyncContextManager[D]],
    work: Callable[[D], Awaitable[T]],
) -> T:
    """Do `work` with what `opened` gives for the database that is meant."""

    async def do(url: str) -> T:
        async with opened(url) as found:
            return await work(found)

    given = postgres_url or os.environ.get(POSTGRES_URL)
    url = given or terminal.addresses().postgres_url
    if url is None:
        raise BadInput(f"no PostgreSQL address: set --postgres-url or {POSTGRES_URL}")
    try:
        return asyncio.run(do(url))
    except Refusal as refusal:
        raise error_of(refusal.code, refusal.reason) from None
    except StoreRefused as error:
        raise error_of(422, str(error)) from None
    except StoreUnavailable as error:
        raise Unavailable(f"PostgreSQL does not answer: {error}") from None
