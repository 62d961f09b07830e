"""Commands that work on the database itself, and not through a coordinator."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from headway.agents.api import error_of
from headway.agents.errors import Unavailable
from headway.cli.addresses import POSTGRES_URL, given_postgres
from headway.cli.failures import BadInput
from headway.cli.terminal import Terminal
from headway.coordinator.errors import Refusal, StoreRefused, StoreUnavailable
from headway.coordinator.postgres_addresses import place

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

    url = given_postgres(postgres_url, os.environ) or terminal.addresses().postgres_url
    if url is None:
        raise BadInput(f"no PostgreSQL address: set --postgres-url or {POSTGRES_URL}")
    try:
        return asyncio.run(do(url))
    except Refusal as refusal:
        raise error_of(refusal.code, refusal.reason) from None
    except StoreRefused as error:
        raise error_of(422, str(error)) from None
    except StoreUnavailable as error:
        raise Unavailable(
            f"no PostgreSQL answers at {place(url)} ({error}); is it running, and is the URL right?"
        ) from None
