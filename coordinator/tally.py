"""Counting what was committed, by slices of 10 s, and what many slices come to. Pure.

Durations are kept as counts in buckets that grow by a tenth each, so that the slices of all
coordinators add up, and a percentile is right to within a tenth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headway.agents.overview_views import MinuteView
from headway.coordinator.observing import (
    AttemptEnded,
    Ended,
    Happening,
    Parked,
    Recovered,
    Submitted,
)

SLICE_MS = 10_000
MINUTE_MS = 60_000
MINUTES = 60
OPEN_SLICES = 6  # back in time that are still counted into; what comes later counts in the oldest
GROWTH = 1.1

COUNTS = (
    "submitted",
    "succeeded",
    "compensated",
    "parked",
    "failures",
    "retries",
    "recoveries",
)


@dataclass(slots=True)
class Slice:
    """What happened in 10 s; `durations` counts ended tasks by bucket."""

    counts: Counter[str] = field(default_factory=Counter)
    durations: Counter[int] = field(default_factory=Counter)

    def add(self, other: Slice) -> None:
        self.counts.update(other.counts)
        self.durations.update(other.durations)

    def count(self, happened: Happening) -> None:
        match happened:
            case Submitted():
                self.counts["submitted"] += 1
            case AttemptEnded():
                self.counts["failures"] += 1
                self.counts["retries"] += happened.retry
            case Recovered():
                self.counts["recoveries"] += 1
            case Ended():
                self.counts[happened.status] += 1
                self.durations[bucket_of(happened.duration_ms)] += 1
            case Parked():
                self.counts["parked"] += 1


class Tally:
    """The slices of one coordinator, while they are counted into."""

    def __init__(self) -> None:
        self._slices: dict[int, Slice] = {}
        self._changed: dict[int, None] = {}
        self._newest = 0

    def count(self, committed: Sequence[tuple[str, Happening]]) -> None:
        """This was committed just now."""
        for _, happened in committed:
            if not isinstance(happened, AttemptEnded) or happened.outcome != "succeeded":
                self._count(happened)

    def _count(self, happened: Happening) -> None:
        began = happened.at - happened.at % SLICE_MS
        began = max(began, self._newest - OPEN_SLICES * SLICE_MS)
        self._newest = max(self._newest, began)
        if began not in self._slices:
            self._slices[began] = Slice()
            self._forget()
        self._slices[began].count(happened)
        self._changed[began] = None

    def changed(self) -> dict[int, Slice]:
        """The slices that changed since they were `kept`, by when they began (ms)."""
        return {began: self._slices[began] for began in self._changed}

    def kept(self, slices: Iterable[int]) -> None:
        """These are being written down as they are."""
        for began in slices:
            self._changed.pop(began, None)

    def again(self, slices: Mapping[int, Slice]) -> None:
        """These could not be written down."""
        for began, counted in slices.items():
            self._slices.setdefault(began, counted)
            self._changed[began] = None

    def _forget(self) -> None:
        oldest = self._newest - OPEN_SLICES * SLICE_MS
        for began in [each for each in self._slices if each < oldest and each not in self._changed]:
            del self._slices[began]


def bucket_of(duration_ms: int) -> int:
    """The bucket of a duration: n holds what took up to 1.1^n ms."""
    return math.ceil(math.log(duration_ms, GROWTH)) if duration_ms > 1 else 0


def percentile(durations: Mapping[int, int], share: float) -> int | None:
    """The duration (ms) that so large a share of the tasks did not exceed; None if none ended."""
    rank = share * sum(durations.values())
    for bucket in sorted(durations):
        rank -= durations[bucket]
        if rank <= 0:
            return round(GROWTH**bucket)
    return None


def minutes_of(slices: Iterable[tuple[int, Slice]], now_ms: int) -> list[MinuteView]:
    """The last hour, minute by minute, oldest first; the last one still goes on."""
    newest = now_ms - now_ms % MINUTE_MS
    minutes = {newest - back * MINUTE_MS: Slice() for back in reversed(range(MINUTES))}
    for began, counted in slices:
        minute = minutes.get(began - began % MINUTE_MS)
        if minute is not None:
            minute.add(counted)
    return [_view(began, counted) for began, counted in minutes.items()]


def last_minute_of(slices: Iterable[tuple[int, Slice]], now_ms: int) -> MinuteView:
    """The slices of the 60 s until now, the one that goes on included."""
    first = now_ms - now_ms % SLICE_MS - MINUTE_MS + SLICE_MS
    total = Slice()
    for began, counted in slices:
        if began >= first:
            total.add(counted)
    return _view(first, total)


def _view(began: int, counted: Slice) -> MinuteView:
    return MinuteView(
        at=datetime.fromtimestamp(began / 1000, UTC),
        p50_ms=percentile(counted.durations, 0.50),
        p95_ms=percentile(counted.durations, 0.95),
        **{name: counted.counts[name] for name in COUNTS},
    )
