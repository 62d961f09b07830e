"""What people declare of agents, sagas and keys, and the places that it holds for. Pure values.

A *place* is a word for one thing that may be limited: `agent/payments`, `saga/refund`, or
`key/payments:customer/alice`: each value that tasks have for the attribute `customer` is a place of
its own for agent `payments`. The value comes from the task's attributes, not from its input: they
are short texts that never change, travel with every task, and can be read where the input is too
large to be at hand, or encrypted. A task without the attribute is not held by such a limit.

Always holds: the places of a command do not depend on what is declared at the moment, so that a
limit which is set, changed or removed counts for what waits already.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from headway.agents.claims import LATE_MAX_S
from headway.agents.limit_views import rate_text

ScopeName = Literal["agent", "saga", "key"]

SECOND_US = 1_000_000

_ATTRIBUTE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Limit(NamedTuple):
    """At most `rate` attempts begun a second, `burst` of them at once; at most `concurrency` at a
    time. None is without that limit. In any W seconds at most rate * W + burst attempts begin."""

    scope: ScopeName
    name: str
    rate: float | None
    burst: int
    concurrency: int | None
    set_by: str = ""
    set_at: datetime | None = None

    @property
    def place(self) -> str:
        """Its place, or for a key the beginning of all of them."""
        return f"{self.scope}/{self.name}"

    @property
    def interval_us(self) -> int:
        """Between two turns."""
        return 0 if self.rate is None else max(1, round(SECOND_US / self.rate))

    @property
    def tolerance_us(self) -> int:
        """How much earlier than evenly spaced turns may come: the burst, but for what the way to
        the worker may bunch up."""
        if self.rate is None:
            return 0
        burst = max(1, self.burst - math.ceil(self.rate * LATE_MAX_S))
        return (burst - 1) * self.interval_us

    @property
    def empty_us(self) -> int:
        """How long its bucket takes to fill, when all of the burst was taken."""
        return self.burst * self.interval_us

    def is_as_fast_as(self, other: Limit | None) -> bool:
        """Whether turns are given as another declaration of its place has them given."""
        return other is not None and (self.rate, self.burst) == (other.rate, other.burst)

    def __str__(self) -> str:
        parts = [] if self.rate is None else [rate_text(self.rate)]
        parts += [] if self.concurrency is None else [f"{self.concurrency} at a time"]
        return ", ".join(parts)


def least_burst(rate: float | None) -> int:
    """What a burst must be so that rate and burst bound what a downstream sees: an attempt may
    begin LATE_MAX_S after its turn, so that as many may come together as have turns in that time.
    It is also the default. Below 5/s that is one, and two may be nearer by that much."""
    if rate is None or rate * LATE_MAX_S < 1:
        return 1
    return math.ceil(rate * LATE_MAX_S) + 1


class Limits:
    """All that is declared."""

    def __init__(self, declared: Iterable[Limit] = ()) -> None:
        self.declared = {limit.place: limit for limit in declared}

    def __bool__(self) -> bool:
        return bool(self.declared)

    def of(self, place: str) -> Limit | None:
        """What limits a place."""
        if place.startswith("key/"):
            place = "/".join(place.split("/", 2)[:2])
        return self.declared.get(place)

    def of_scope(self, *scopes: ScopeName) -> list[Limit]:
        return [limit for limit in self.declared.values() if limit.scope in scopes]

    def limiting(self, places: Iterable[str]) -> dict[str, Limit]:
        """Those of these places that something limits."""
        found = ((place, self.of(place)) for place in places)
        return {place: limit for place, limit in found if limit is not None}


def agent_place(agent: str) -> str:
    return f"agent/{agent}"


def places_of(agent: str, saga: str, attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Every place that may limit a command for `agent` of a task of `saga`."""
    keys = (
        f"key/{agent}:{name}/{value}"
        for name, value in sorted(attributes.items())
        if _ATTRIBUTE.fullmatch(name)
    )
    return (agent_place(agent), f"saga/{saga}", *keys)


def is_attribute(name: str) -> bool:
    """Whether a task's attribute of this name can be the key of a limit."""
    return _ATTRIBUTE.fullmatch(name) is not None
