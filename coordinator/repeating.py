"""What is done over and over, or until it is done once: no outage ends it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from headway.coordinator.errors import CoordinatorError, SchemaMismatch

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 0.5  # each loop finds what was away to be back within so long
COMPLAINT_INTERVAL_S = 5.0

_LOG = logging.getLogger(__name__)


async def forever(name: str, step: Callable[[], Awaitable[None]], interval_s: float) -> None:
    """`step` every `interval_s` seconds, until cancelled; sooner after it has failed."""
    wait_s, said_at = BACKOFF_FIRST_S, 0.0
    while True:
        try:
            await step()
            wait_s = BACKOFF_FIRST_S
            await asyncio.sleep(interval_s)
            continue
        except CoordinatorError as error:
            if time.monotonic() - said_at > COMPLAINT_INTERVAL_S:
                said_at = time.monotonic()
                _LOG.warning("%s: %s; trying again", name, error)
        except Exception:
            _LOG.exception("%s failed; trying again", name)
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, BACKOFF_MAX_S)


async def until_up(name: str, step: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    """`step` until it succeeds once, or `stop` is set; raises SchemaMismatch only."""
    wait_s, said_at = BACKOFF_FIRST_S, 0.0
    while not stop.is_set():
        try:
            await step()
            return
        except SchemaMismatch:
            raise
        except CoordinatorError as error:
            if time.monotonic() - said_at > COMPLAINT_INTERVAL_S:
                said_at = time.monotonic()
                _LOG.warning("waiting for %s: %s", name, error)
        await first_of(asyncio.sleep(wait_s), stop)
        wait_s = min(2 * wait_s, BACKOFF_MAX_S)


async def first_of(work: Any, stop: asyncio.Event) -> Any:
    """The result of `work`, or None when `stop` is set before."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return None
