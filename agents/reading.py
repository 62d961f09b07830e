"""Reading what coordinators know, and waiting for it to change.

The feed on core NATS says that something changed; it may be lost, so every wait also polls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from headway.agents.api import Api
from headway.agents.errors import InvalidInput, NotFound, Unavailable
from headway.agents.messages import describe
from headway.agents.subjects import FEED, feed_of_task
from headway.agents.views import (
    ENDED,
    PARKED,
    AgentList,
    History,
    HistoryEntry,
    HistoryRequest,
    SagaList,
    SagaRef,
    SagaView,
    TaskRequest,
    TaskView,
)
from pydantic import BaseModel, ValidationError

POLL_S = 1.0
POLLS_AT_ONCE = 64
SETTLED = ENDED | PARKED
UNKNOWN_FOR_S = 30.0  # how long a published task may be unknown before it counts as that


class Health(BaseModel):
    """How a coordinator and its servers are, by its own words."""

    status: str
    postgres: str
    nats: str = "ok"  # which carried the answer
    version: str
    now: datetime


class Reading(Api):
    """Questions that change nothing."""

    async def status(self, task: UUID) -> TaskView:
        """The task as it is now; NotFound if no coordinator has accepted it."""
        return await self.ask("get", TaskRequest(task=task), TaskView)

    async def history(self, task: UUID) -> list[HistoryEntry]:
        """All that happened to the task, oldest first."""
        entries: list[HistoryEntry] = []
        while True:
            after = entries[-1].version if entries else 0
            page = await self.ask("history", HistoryRequest(task=task, after=after), History)
            entries += page.entries
            if not page.more or not page.entries:
                return entries

    async def watch(self, task: UUID) -> AsyncIterator[TaskView]:
        """The task now and after each change, until it is settled (ended, or parked).

        A task that was only just published may be unknown for a while; NotFound after
        UNKNOWN_FOR_S. Changes that follow each other closely may come as one.
        """
        seen = 0
        async for view in self._looks(task, lambda _kind: True):
            if view.version > seen:
                seen = view.version
                yield view

    async def _looks(self, task: UUID, is_news: Callable[[str], bool]) -> AsyncIterator[TaskView]:
        """The task, looked at whenever the feed has news or POLL_S went by, until settled."""
        unknown_until = time.monotonic() + UNKNOWN_FOR_S
        async with self._news(feed_of_task(str(task)), is_news) as news:
            while True:
                news.clear()
                try:
                    view = await self.status(task)
                except NotFound:
                    if time.monotonic() > unknown_until:
                        raise
                else:
                    yield view
                    if view.settled:
                        return
                await _wait(news, POLL_S)

    async def result(self, task: UUID, *, timeout: float | None = None) -> TaskView:
        """The task once it is settled: ended, or parked in front of a person.

        Rides out coordinators that are away. Raises Unavailable if the task is not settled
        within `timeout` seconds, NotFound as `watch` does.
        """
        try:
            async with asyncio.timeout(timeout):
                while True:
                    try:
                        async for view in self._looks(task, SETTLED.__contains__):
                            last = view
                        return last
                    except Unavailable:
                        await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise Unavailable(f"task {task} is not settled after {timeout:g} s") from None

    @asynccontextmanager
    async def end_of(self, task: UUID) -> AsyncIterator[Callable[[float | None], Awaitable[None]]]:
        """Listens for the end of a task that may not exist yet.

        Gives what waits for news of it, so many seconds or POLL_S at most: no news is no proof.
        """
        async with self._news(feed_of_task(str(task)), SETTLED.__contains__) as news:

            async def ended(timeout: float | None) -> None:
                await _wait(news, min(POLL_S, POLL_S if timeout is None else timeout))

            yield ended

    async def results(self, tasks: Iterable[UUID]) -> AsyncIterator[TaskView]:
        """Each of `tasks` once it is settled, in the order in which that is noticed."""
        open_tasks = dict.fromkeys(tasks)
        news: asyncio.Queue[UUID] = asyncio.Queue()
        sids = [
            await self.connection.wire.subscribe(
                FEED.rpartition(".")[0] + f".{kind}",
                lambda subject, _reply, _headers, _body: _note(subject, open_tasks, news),
            )
            for kind in sorted(SETTLED)
        ]
        polling = asyncio.create_task(self._poll(open_tasks, news))
        try:
            while open_tasks:
                task = await news.get()
                if task not in open_tasks:
                    continue
                try:
                    view = await self.status(task)
                except (NotFound, Unavailable):
                    continue  # polled again later
                if view.settled and task in open_tasks:
                    del open_tasks[task]
                    yield view
        finally:
            polling.cancel()
            for sid in sids:
                await self.connection.wire.unsubscribe(sid, drain=False)

    async def _poll(self, open_tasks: dict[UUID, None], news: asyncio.Queue[UUID]) -> None:
        """Have every open task looked at: at once, since it may have ended before we listened, then
        a few at a time, over and over."""
        for task in open_tasks:
            news.put_nowait(task)
        while open_tasks:
            await asyncio.sleep(POLL_S)
            for number, task in enumerate(tuple(open_tasks), start=1):
                if task in open_tasks:
                    news.put_nowait(task)
                if number % POLLS_AT_ONCE == 0:
                    await asyncio.sleep(POLL_S)

    @asynccontextmanager
    async def _news(
        self, subject: str, is_news: Callable[[str], bool]
    ) -> AsyncIterator[asyncio.Event]:
        """An event that is set by news of a kind that counts, and by every reconnect."""
        news = asyncio.Event()
        wire = self.connection.wire

        def on_feed(subject: str, _reply: str, _headers: bytes, _body: bytes) -> None:
            if is_news(subject.rpartition(".")[2]):
                news.set()

        forget = wire.on_reconnect(news.set)
        sid = await wire.subscribe(subject, on_feed)
        try:
            yield news
        finally:
            forget()
            await wire.unsubscribe(sid, drain=False)

    async def sagas(self) -> SagaList:
        """The registered sagas, each version."""
        return await self.ask("saga.list", b"{}", SagaList)

    async def saga(self, name: str, version: int | None = None) -> SagaView:
        """One saga with its definition; the newest version unless one is given."""
        try:
            wanted = SagaRef(name=name, version=version)
        except ValidationError as error:
            raise InvalidInput(describe(error)) from error
        return await self.ask("saga.get", wanted, SagaView)

    async def agents(self) -> AgentList:
        """Which agents are there or are wanted, and what waits for each."""
        return await self.ask("agents", b"{}", AgentList)

    async def health(self) -> Health:
        """How a coordinator and its servers are."""
        return await self.ask("health", b"{}", Health)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def _note(subject: str, open_tasks: dict[UUID, None], news: asyncio.Queue[UUID]) -> None:
    """Queue the task that a feed subject names, if it is one of ours."""
    try:
        task = UUID(subject.split(".")[3])
    except (ValueError, IndexError):
        return
    if task in open_tasks:
        news.put_nowait(task)
