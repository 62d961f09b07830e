"""The newest news of the feed, in memory, for all who listen at one coordinator. Pure.

Always holds: from a place in the ring on, nothing that the stream stored is missing; who is behind
its oldest entry reads the stream instead. A listener costs no memory here, however slow it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from headway.agents.feed_views import FeedRequest

RING_MAX = 4_096  # entries


class Position(NamedTuple):
    """A sequence of HW_FEED, and which HW_FEED: one whose store was lost begins anew at 1."""

    stream: str
    sequence: int

    def __str__(self) -> str:
        return f"{self.sequence}.{self.stream}" if self.stream else str(self.sequence)

    @staticmethod
    def read(text: str) -> Position | None:
        """What `str` of one gave, or only the sequence; None if it is neither."""
        sequence, _, stream = text.strip().partition(".")
        if not (sequence.isascii() and sequence.isdigit() and len(sequence) <= 19):
            return None
        if stream and not (stream.isascii() and stream.isalnum()):
            return None
        return Position(stream, int(sequence))


class FeedEvent(NamedTuple):
    """`sequence` 0: a hint, which is not stored, and may be lost."""

    sequence: int
    saga: str
    task: str
    kind: str
    data: bytes

    @staticmethod
    def read(subject: str, sequence: int, data: bytes) -> FeedEvent | None:
        """From `hw.feed.<saga>.<task>.<kind>`; None if it is no such subject."""
        words = subject.split(".")
        if len(words) != 5 or words[1] != "feed":
            return None
        saga, task, kind = words[2:]
        return FeedEvent(sequence, saga, task, kind, data)

    def is_wanted(self, request: FeedRequest) -> bool:
        return (
            (request.task is None or str(request.task) == self.task)
            and (request.saga is None or request.saga == self.saga)
            and (not request.kind or self.kind in request.kind)
        )


class Ring:
    """Entries have places: 0, 1, 2 … over all that ever came."""

    def __init__(self, position: Position) -> None:
        self.position = position  # all that was stored up to there is here, or came before
        self._entries: deque[FeedEvent] = deque()
        self._first = 0  # place of the oldest entry
        self._whole_after = position.sequence  # what was stored later is in the ring

    @property
    def head(self) -> int:
        """The place after the newest entry."""
        return self._first + len(self._entries)

    def append(self, event: FeedEvent) -> None:
        if event.sequence:
            self.position = self.position._replace(sequence=event.sequence)
        self._entries.append(event)
        if len(self._entries) > RING_MAX:
            dropped = self._entries.popleft()
            self._first += 1
            self._whole_after = dropped.sequence or self._whole_after

    def place_after(self, sequence: int) -> int | None:
        """Where to go on after a stored event; None if the stream must be read first."""
        if sequence < self._whole_after:
            return None
        for back, event in enumerate(reversed(self._entries)):
            if event.sequence and event.sequence <= sequence:
                return self.head - back
        return self._first

    def since(self, place: int) -> Sequence[FeedEvent] | None:
        """The entries from a place on; None if some of them are gone."""
        if place < self._first:
            return None
        return tuple(islice(self._entries, place - self._first, None))
