"""Group commit: requests that wait while something is being committed are committed next, together.

Always holds: one batch at a time; a request on an idle system waits for nothing; a request that is
answered was committed or refused; no two requests that touch the same thing are in one batch, and
those that do are taken in the order in which they came.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from headway.coordinator.errors import CoordinatorError, Refusal, StoreUnavailable

_LOG = logging.getLogger(__name__)

BATCH_MAX = 256  # requests
BATCH_MAX_BYTES = 8 * 1_048_576

R = TypeVar("R")
A = TypeVar("A")

Commit = Callable[[Sequence[R]], Awaitable[Sequence[A | CoordinatorError]]]
"""Commits requests and gives an answer, or what it is refused with, to each of them."""


@dataclass(slots=True, eq=False)
class _Waiting(Generic[R, A]):
    request: R
    size: int  # bytes
    answer: asyncio.Future[A]


class GroupCommit(Generic[R, A]):
    def __init__(self, commit: Commit[R, A], touches: Callable[[R], Collection[Hashable]]) -> None:
        """`touches` names what a request reads and writes."""
        self._commit = commit
        self._touches = touches
        self._waiting: deque[_Waiting[R, A]] = deque()
        self._running: asyncio.Task[None] | None = None

    async def ask(self, request: R, size: int) -> A:
        """The answer to a request of `size` bytes, once it is committed. Raises what it is refused
        with, or StoreUnavailable: then nobody knows, and asking again must be harmless."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[R, A] = _Waiting(request, size, loop.create_future())
        self._waiting.append(waiting)
        if self._running is None:
            self._running = loop.create_task(self._run())
        return await waiting.answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._batch(self._take())
        finally:
            self._running = None

    def _take(self) -> list[_Waiting[R, A]]:
        taken: list[_Waiting[R, A]] = []
        held: list[_Waiting[R, A]] = []
        touched: set[Hashable] = set()
        size = 0
        while self._waiting and len(taken) < BATCH_MAX and size < BATCH_MAX_BYTES:
            waiting = self._waiting.popleft()
            mine = self._touches(waiting.request)
            if touched.isdisjoint(mine):
                taken.append(waiting)
                size += waiting.size
            else:
                held.append(waiting)
            touched.update(mine)
        self._waiting.extendleft(reversed(held))
        return taken

    async def _batch(self, batch: list[_Waiting[R, A]]) -> None:
        """Commit; a fault of one request is narrowed down to it, so that it fails alone."""
        try:
            answers = await self._commit([waiting.request for waiting in batch])
        except StoreUnavailable as error:
            answers = [error] * len(batch)
        except Exception as error:
            if len(batch) > 1:
                for waiting in batch:
                    await self._batch([waiting])
                return
            answers = [_fault(error)]
        for waiting, answer in zip(batch, answers, strict=True):
            if waiting.answer.done():
                continue  # who asked has gone
            if isinstance(answer, CoordinatorError):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)


def _fault(error: Exception) -> CoordinatorError:
    if isinstance(error, CoordinatorError):
        return error
    _LOG.error("a request could not be decided or committed", exc_info=error)
    return Refusal("this could not be decided: an internal error, see the log", 500)
