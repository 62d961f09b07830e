"""What waits for the engine: items, grouped so that no task is in two batches at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from headway.coordinator.errors import Refusal
from headway.coordinator.records import Loaded, NewTask, Trace
from headway.sagas.definition import Definition
from headway.sagas.inputs import Input
from headway.sagas.values import value


@value
class Answer:
    """What became of an item. `task` is its task afterwards, for items answered at the commit."""

    task: Loaded | None
    refusal: Refusal | None = None
    changed: bool = False


def nobody_waits(_answer: Answer) -> None:
    """For items that a coordinator finds out itself: it looks again, and needs no answer."""


@dataclass(slots=True)
class Item:
    """One thing that happened to a task, and whom to tell what came of it.

    `at_commit`: answer as soon as it is committed, else when the commands that follow from it are
    stored as well. An item that is never answered will come again: its message is not acked.
    """

    task: UUID
    happened: Input
    answer: Callable[[Answer], None]
    new: NewTask | None = None
    agent: str = ""  # who sent it, if it is an agent's event
    target: Definition | None = None  # the version of its saga that a person moves it to
    repeated: bool = False
    at_commit: bool = False


Sample = Callable[[UUID, str], bool]
"""Whether a task, submitted within the span of this traceparent, is traced."""


class Intake:
    """A queue of items. Always holds: what is taken is not given out again for a task until
    that task is released."""

    def __init__(self, sample: Sample | None = None) -> None:
        """Without `sample` nobody decides whether a task is traced."""
        self._sample = sample
        self._waiting: deque[Item] = deque()
        self._busy: set[UUID] = set()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: Item) -> None:
        new = item.new
        if self._sample is not None and new is not None and new.trace.sampled is None:
            origin = new.trace.origin
            new.trace = Trace(self._sample(new.id, origin), origin)
        self._waiting.append(item)
        self._idle.clear()
        self._wake.set()

    async def wait(self) -> None:
        """Until something may have come or been released."""
        await self._wake.wait()

    def wake(self) -> None:
        """Let whoever waits have a look, whatever there is."""
        self._wake.set()

    def doze(self) -> None:
        """Forget the wake-up: there is something, but it is not wanted before the next one."""
        self._wake.clear()

    def take(self, limit: int) -> list[Item]:
        """The next items, at most `limit`, of tasks that are not busy; they are busy now."""
        taken: list[Item] = []
        held: list[Item] = []
        mine: set[UUID] = set()
        while self._waiting and len(taken) < limit:
            item = self._waiting.popleft()
            if item.task in self._busy:
                held.append(item)
            else:
                taken.append(item)
                mine.add(item.task)
        self._waiting.extendleft(reversed(held))
        self._busy |= mine
        self._wake.clear()
        if taken and len(self._waiting) > len(held):
            self._wake.set()
        return taken

    async def idle(self) -> None:
        """Until nothing waits and nothing is under way."""
        await self._idle.wait()

    def release(self, tasks: Iterable[UUID]) -> None:
        self._busy.difference_update(tasks)
        if not self._waiting and not self._busy:
            self._idle.set()
        self._wake.set()
