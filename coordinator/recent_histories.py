"""The histories of traced tasks that this coordinator committed alone, from their submission on.

A hint that saves reading them again: a task that a peer had a hand in, or for which there is no
room, is not here. What is here is what is stored, since it was committed on the version before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from headway.coordinator.decisions import Decision
from headway.coordinator.spans import Traced
from headway.sagas.events import AttemptHeartbeat, Event

EVENTS_MAX = 65_536  # in all
TASK_EVENTS_MAX = 256  # of one task; a longer one is read


class Known(NamedTuple):
    """A task and its history up to a version, but for signs of life; whether it had ended then."""

    task: Traced
    history: list[Event]
    sent: int  # how many of them were sent
    ended: bool


@dataclass(slots=True)
class _Kept:
    task: Traced
    events: list[Event]
    ended: bool


class RecentHistories:
    """Always holds: at most EVENTS_MAX events; the oldest task goes first."""

    def __init__(self) -> None:
        self._kept: dict[UUID, _Kept] = {}
        self._events = 0

    def observe(self, decisions: Sequence[Decision]) -> None:
        """These were committed."""
        for decision in decisions:
            change, after = decision.change, decision.after
            if change is None or after is None or not after.trace.sampled:
                continue
            if change.new is not None:
                traced = Traced(
                    change.id,
                    after.definition,
                    after.trace,
                    after.parent is not None,
                    after.input_digest,
                )
                kept = self._kept[change.id] = _Kept(traced, [], ended=False)
            else:
                found = self._kept.get(change.id)
                if found is None:
                    continue
                kept = found
            room = TASK_EVENTS_MAX - len(change.events)
            if len(kept.events) != change.expected or change.expected > room:
                self.forget(change.id)
                continue
            kept.task = kept.task._replace(definition=after.definition)
            kept.events += change.events
            kept.ended = change.task.ended
            self._events += len(change.events)
        while self._events > EVENTS_MAX:
            self.forget(next(iter(self._kept)))

    def look(self, task: UUID, version: int, sent: int) -> Known | None:
        """The task up to `version`, of which what led to `sent` was sent; None if not here."""
        kept = self._kept.get(task)
        if kept is None or len(kept.events) < version:
            return None
        signs = [isinstance(event, AttemptHeartbeat) for event in kept.events[:version]]
        events = kept.events[:version]
        history = [event for event, sign in zip(events, signs, strict=True) if not sign]
        whole = len(kept.events) == version
        return Known(kept.task, history, sent - sum(signs[:sent]), whole and kept.ended)

    def forget(self, task: UUID) -> None:
        kept = self._kept.pop(task, None)
        if kept is not None:
            self._events -= len(kept.events)
