"""Waiting for tasks to change, and to settle.

The feed on core NATS says that something changed; it may be lost, so every wait also polls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from uuid import UUID

from headway.agents.errors import NotFound, Unavailable
from headway.agents.news import SETTLED, is_any, news_of, wait_for
from headway.agents.reading import Reading
from headway.agents.subjects import FEED
from headway.agents.views import TaskView

POLL_S = 1.0
POLLS_AT_ONCE = 64
UNKNOWN_FOR_S = 30.0  # how long a published task may be unknown before it counts as that


class Waiting(Reading):
    """Questions that are answered when something happens."""

    async def watch(self, task: UUID) -> AsyncIterator[TaskView]:
        """The task now and after each change, until it is settled (ended, or parked).

        A task that was only just published may be unknown for a while; NotFound after
        UNKNOWN_FOR_S. Changes that follow each other closely may come as one.
        """
        seen = 0
        unknown_until = time.monotonic() + UNKNOWN_FOR_S
        async with news_of(self.connection.wire, task, is_any) as news:
            while True:
                news.clear()
                view = await self._known(task, unknown_until)
                if view is not None and view.version > seen:
                    seen = view.version
                    yield view
                if view is not None and view.settled:
                    return
                await wait_for(news, POLL_S)

    async def result(self, task: UUID, *, timeout: float | None = None) -> TaskView:
        """The task once it is settled: ended, or parked in front of a person.

        Rides out coordinators that are away. Raises Unavailable if the task is not settled
        within `timeout` seconds, NotFound as `watch` does.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._settled(task)
        except TimeoutError:
            raise Unavailable(f"task {task} is not settled after {timeout:g} s") from None

    async def _settled(self, task: UUID) -> TaskView:
        """The task once it is settled, however long that takes."""
        unknown_until = time.monotonic() + UNKNOWN_FOR_S
        while True:
            try:
                view = await self._known(task, unknown_until, POLL_S)
            except Unavailable:
                await asyncio.sleep(POLL_S)
                continue
            if view is not None and view.settled:
                return view

    async def _known(
        self, task: UUID, unknown_until: float, wait_s: float = 0.0
    ) -> TaskView | None:
        """The task, settled if that comes within `wait_s`; None if it is not known yet."""
        try:
            return await self._get(task, wait_s)
        except NotFound:
            if time.monotonic() > unknown_until:
                raise
            return None

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


def _note(subject: str, open_tasks: dict[UUID, None], news: asyncio.Queue[UUID]) -> None:
    """Queue the task that a feed subject names, if it is one of ours."""
    try:
        task = UUID(subject.split(".")[3])
    except (ValueError, IndexError):
        return
    if task in open_tasks:
        news.put_nowait(task)
