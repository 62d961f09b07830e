"""The numbers of one coordinator: counters, histograms and gauges of `instruments`.

Adding to one costs a look into a dictionary. Nothing here waits, and nothing is sent: whoever wants
the numbers reads them, as text for Prometheus or as OTLP.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from headway.coordinator.instruments import INSTRUMENTS, OTHER, SERIES_MAX, VALUES_MAX, Instrument

Labels = tuple[str, ...]


class Distribution:
    """How often a value fell into each bucket; the last one is without a limit."""

    __slots__ = ("buckets", "total")

    def __init__(self, bounds: int) -> None:
        self.buckets = [0] * (bounds + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        return sum(self.buckets)


class Reading(NamedTuple):
    """A metric and its series, by the values of its attributes."""

    instrument: Instrument
    series: Mapping[Labels, float | Distribution]


class Metrics:
    """Always holds: at most as many series as `instruments` allows."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Labels, float]] = {}
        self._distributions: dict[str, dict[Labels, Distribution]] = {}
        self._known: dict[str, dict[str, None]] = {}  # values by attribute
        for name, each in INSTRUMENTS.items():
            if each.kind == "histogram":
                self._distributions[name] = {}
            else:
                self._numbers[name] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Count `value` more; `labels` are the attributes' values, in their order."""
        series = self._numbers[name]
        if labels not in series:
            labels = self._folded(name, labels, series)
            series.setdefault(labels, 0)
        series[labels] += value

    def record(self, name: str, values: Sequence[float], *labels: str) -> None:
        """Take values into a histogram."""
        if not values:
            return
        series = self._distributions[name]
        found = series.get(labels)
        bounds = INSTRUMENTS[name].bounds
        if found is None:
            labels = self._folded(name, labels, series)
            found = series.setdefault(labels, Distribution(len(bounds)))
        for value in values:
            found.buckets[bisect_left(bounds, value)] += 1
        found.total += sum(values)

    def set(self, name: str, values: Mapping[Labels, float]) -> None:
        """What a gauge shows from now on, and nothing else."""
        self._numbers[name] = {self._folded(name, labels, {}): v for labels, v in values.items()}

    def read(self) -> Iterator[Reading]:
        """All that has a number, in the order of the table."""
        for name, each in INSTRUMENTS.items():
            series: Mapping[Labels, float | Distribution] = (
                self._distributions[name] if each.kind == "histogram" else self._numbers[name]
            )
            if series:
                yield Reading(each, series)

    def _folded(self, name: str, labels: Labels, series: Mapping[Labels, object]) -> Labels:
        """The series that these labels are counted in."""
        attributes = INSTRUMENTS[name].attributes
        found = tuple(self._value(*each) for each in zip(attributes, labels, strict=True))
        if found not in series and len(series) >= SERIES_MAX:
            return (OTHER,) * len(labels)
        return found

    def _value(self, attribute: str, value: str) -> str:
        known = self._known.setdefault(attribute, {})
        if value not in known:
            if len(known) >= VALUES_MAX[attribute]:
                return OTHER
            known[value] = None
        return value
