"""Hearing that a task moved on, on the feed.

The feed is core NATS: what it says may be lost, so whoever waits for it looks again by and by.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from headway.agents.subjects import feed_of_task
from headway.agents.views import ENDED, PARKED
from headway.agents.wire import Wire

SETTLED = ENDED | PARKED  # kinds of news, too


def is_settled(kind: str) -> bool:
    return kind in SETTLED


def is_any(_kind: str) -> bool:
    return True


@asynccontextmanager
async def news_of(
    wire: Wire, task: UUID, is_news: Callable[[str], bool]
) -> AsyncIterator[asyncio.Event]:
    """An event that is set by news of a kind that counts, and by every reconnect."""
    news = asyncio.Event()

    def on_feed(subject: str, _reply: str, _headers: bytes, _body: bytes) -> None:
        if is_news(subject.rpartition(".")[2]):
            news.set()

    forget = wire.on_reconnect(news.set)
    sid = await wire.subscribe(feed_of_task(str(task)), on_feed)
    try:
        yield news
    finally:
        forget()
        await wire.unsubscribe(sid, drain=False)


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Until the event is set, or so long."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
