"""Hearing that something changed: a task, on the feed; a document, on its subject.

This is core NATS: what it says may be lost, so whoever waits for it looks again by and by.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from uuid import UUID

from headway.agents.subjects import feed_of_task
from headway.agents.views import ENDED, PARKED
from headway.agents.wire import Wire

SETTLED = ENDED | PARKED  # kinds of news, too


def is_settled(kind: str) -> bool:
    return kind in SETTLED


def is_any(_kind: str) -> bool:
    return True


def news_of(
    wire: Wire, task: UUID, is_news: Callable[[str], bool]
) -> AbstractAsyncContextManager[asyncio.Event]:
    """An event that is set by news of a kind that counts, and by every reconnect."""
    return news_on(wire, feed_of_task(str(task)), is_news)


@asynccontextmanager
async def news_on(
    wire: Wire, subjects: str, is_news: Callable[[str], bool] = is_any
) -> AsyncIterator[asyncio.Event]:
    """As `news_of`, on any subjects; a kind is a subject's last token."""
    news = asyncio.Event()

    def on_news(subject: str, _reply: str, _headers: bytes, _body: bytes) -> None:
        if is_news(subject.rpartition(".")[2]):
            news.set()

    forget = wire.on_reconnect(news.set)
    sid = await wire.subscribe(subjects, on_news)
    try:
        yield news
    finally:
        forget()
        await wire.unsubscribe(sid, drain=False)


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Until the event is set, or so long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
