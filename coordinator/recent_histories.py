"""The histories of traced tasks that this coordinator committed alone, from their submission on.

A hint that saves reading them again: a task that a peer had a hand in, or for which there is no
room, is not here. What is here is what is stored, since it was committed on the version before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from headway.coordinator.records import Change, Loaded
from headway.coordinator.span_debts import milliseconds
from headway.coordinator.spans import Traced
from headway.sagas.events import AttemptHeartbeat, Event

EVENTS_MAX = 131_072  # in all
TASK_EVENTS_MAX = 256  # of one task; a longer one is read


class Known(NamedTuple):
    """A task and its history, but for signs of life, up to a version; how much of that there was
    up to the version that was read."""

    task: Traced
    history: Sequence[Event]
    read: int


class _Kept:
    """`signs` are the versions of the signs of life, which are left out of `events`."""

    __slots__ = ("events", "signs", "task")

    def __init__(self, task: Loaded) -> None:
        self.task = task
        self.events: list[Event] = []
        self.signs: list[int] = []

    @property
    def version(self) -> int:
        return len(self.events) + len(self.signs)

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            if type(event) is AttemptHeartbeat:
                self.signs.append(self.version + 1)
            else:
                self.events.append(event)

    def count(self, version: int) -> int:
        """How many events there are up to a version."""
        return version - bisect_right(self.signs, version) if self.signs else version


class RecentHistories:
    """Always holds: at most EVENTS_MAX events; the oldest task goes first."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}  # by task: as an int, which is found at once
        self._events = 0

    def take(self, change: Change, after: Loaded) -> None:
        """This was committed: a change of a traced task, which then stood as `after`."""
        task = change.id.int
        if change.new is not None:
            found = self._kept[task] = _Kept(after)
        else:
            kept = self._kept.get(task)
            if kept is None:
                return
            if kept.version != change.expected or change.expected > TASK_EVENTS_MAX:
                self._forget(task)
                return
            found = kept
            found.task = after
        found.take(change.events)
        self._events += len(change.events)
        while self._events > EVENTS_MAX:
            self._forget(next(iter(self._kept)))

    def look(self, task: UUID, read: int, version: int) -> Known | None:
        """The task up to `version`; None if that is not here."""
        kept = self._kept.get(task.int)
        if kept is None or kept.version < version:
            return None
        return Known(traced(kept.task), kept.events[: kept.count(version)], kept.count(read))

    def settle(self, task: UUID) -> None:
        """Its spans were sent: forget it if it has ended."""
        kept = self._kept.get(task.int)
        if kept is not None and kept.task.task.ended:
            self._forget(task.int)

    def _forget(self, task: int) -> None:
        self._events -= self._kept.pop(task).version


def traced(task: Loaded) -> Traced:
    """A task, as far as spans need it."""
    return Traced(
        task.id,
        task.definition,
        task.trace,
        task.parent is not None,
        task.input_digest,
        milliseconds(task.created_at),
    )
