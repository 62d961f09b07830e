"""Whose turn it is, and when. Pure: decisions over values, times in microseconds by one clock.

Two gates, one behind the other:

*Admission* lets a command into the stream, in order: compensations first, then by priority
(9 first), then by turns from the oldest of the line and from the newest of what is new, so that
neither a backlog nor new work starves the other. It admits no more than can begin within LEAD_US,
so that what is in the stream is never far ahead of what could still be put before it; and no more
at a time than the declared concurrency.

A *turn* lets an attempt begin, be it the first, a retry or one that is taken over: all pass one
token bucket (generic cell rate algorithm) of each place that limits them.

Always holds: in any W seconds at most rate * W + burst turns of a place; a place that has no room
holds back what belongs to it and nothing else; asked for again, a turn is the same. One that was
slept through is lost: to give it back would crowd those that come after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from headway.agents.claims import LATE_MAX_S
from headway.coordinator.limits import SECOND_US, Limit, Limits, agent_place

LEAD_US = SECOND_US
TURN_KEPT_US = round(LATE_MAX_S * SECOND_US)  # after its time; then a turn is lost


class Candidate(NamedTuple):
    """A command that waits. `fresh`: it is new and was never published before."""

    task: UUID
    step: str
    phase: str
    attempt: int
    epoch: int
    agent: str
    places: tuple[str, ...]
    priority: int
    since_us: int
    fresh: bool

    @property
    def rank(self) -> tuple[bool, int]:
        return self.phase == "compensation", self.priority


class Use(NamedTuple):
    """Attempts at a place that are admitted and not ended; `ready` of them have not begun."""

    open: int = 0
    ready: int = 0

    @property
    def begun(self) -> int:
        return self.open - self.ready


@dataclass(slots=True)
class Room:
    """What the places have room for, while candidates are admitted. `singly`: agents that are given
    one command at a time; more than that is not put into the stream ahead."""

    limits: Limits
    use: dict[str, Use]
    levels: Mapping[str, int]
    now_us: int
    singly: frozenset[str] = frozenset()
    full: dict[str, None] = field(default_factory=dict)

    def has(self, places: Iterable[str]) -> bool:
        """Whether all of these places have room; those that have not are `full` from now on."""
        crowded = [place for place in places if self._is_full(place)]
        self.full.update(dict.fromkeys(crowded))
        return not crowded

    def _is_full(self, place: str) -> bool:
        use = self.use.get(place, Use())
        if place in self.singly and use.ready:
            return True
        limit = self.limits.of(place)
        if limit is None:
            return False
        if limit.concurrency is not None and use.open >= limit.concurrency:
            return True
        if limit.rate is None:
            return False
        level = max(self.levels.get(place, 0), self.now_us) + use.ready * limit.interval_us
        return level - limit.tolerance_us > self.now_us + LEAD_US

    def take(self, places: Iterable[str]) -> None:
        for place in places:
            use = self.use.get(place, Use())
            self.use[place] = Use(use.open + 1, use.ready + 1)


def in_line(candidates: Sequence[Candidate], *, fresh_first: bool) -> list[Candidate]:
    """The order in which they are admitted; each once."""
    ranks: dict[tuple[bool, int], tuple[list[Candidate], list[Candidate]]] = {}
    for each in sorted(candidates, key=lambda each: (each.since_us, each.task, each.step)):
        ranks.setdefault(each.rank, ([], []))[each.fresh].append(each)
    line: dict[tuple[UUID, str], Candidate] = {}
    for rank in sorted(ranks, reverse=True):
        old, fresh = ranks[rank]
        for each in _by_turns(old, fresh[::-1], fresh_first=fresh_first):
            line.setdefault((each.task, each.step), each)
    return list(line.values())


def _by_turns(
    old: list[Candidate], fresh: list[Candidate], *, fresh_first: bool
) -> Iterable[Candidate]:
    """One from each in turn; what was served from one does not count again for the other."""
    lanes = [iter(fresh), iter(old)] if fresh_first else [iter(old), iter(fresh)]
    served: dict[tuple[UUID, str], None] = {}
    while lanes:
        for lane in list(lanes):
            for each in lane:
                if (each.task, each.step) not in served:
                    served[each.task, each.step] = None
                    yield each
                    break
            else:
                lanes.remove(lane)


def admitted(line: Iterable[Candidate], room: Room, most: int) -> list[Candidate]:
    """Those that are let in, at most `most` of them."""
    taken: list[Candidate] = []
    for each in line:
        if len(taken) >= most:
            break
        if room.has(each.places):
            room.take(each.places)
            taken.append(each)
    return taken


class Standing(NamedTuple):
    """What is known of a step's command: its row, if it has one, and where it belongs."""

    places: tuple[str, ...]
    priority: int
    row: tuple[str, int, int] | None = None  # phase, attempt, epoch
    state: str = ""
    asked: str = ""
    turn_us: int = 0
    agent: str = ""

    @property
    def is_stranger(self) -> bool:
        """Whether it was never admitted."""
        return self.state not in ("admitted", "begun")


class Ask(NamedTuple):
    """A worker has a command and wants its turn; `asked` says which delivery it is, to whom."""

    task: UUID
    step: str
    phase: str
    attempt: int
    epoch: int
    asked: str


class Turn(NamedTuple):
    """When the attempt may begin; `new` if that is to be written down. `late`: a newer command of
    the step waits, so that this one is of no use. `full`: not now, ask again."""

    at_us: int = 0
    new: bool = False
    late: bool = False
    full: bool = False


def turn(
    ask: Ask,
    standing: Standing,
    limits: Limits,
    levels: dict[str, int],
    use: dict[str, Use],
    now_us: int,
) -> Turn:
    """Give a turn, and put it into `levels`.

    A command that was never admitted, since its limit came later, counts from here on, in `use`.
    """
    if standing.row is not None and standing.row > (ask.phase, ask.attempt, ask.epoch):
        return Turn(late=True)
    limiting = limits.limiting(standing.places)
    has_one = standing.asked == ask.asked and standing.turn_us + TURN_KEPT_US >= now_us
    if has_one and standing.turn_us <= _earliest(limiting, levels, now_us):
        return Turn(standing.turn_us)  # a later one is of a rate, or a clock, that is no more
    if standing.is_stranger:
        if _is_crowded(limiting, use):
            return Turn(full=True)
        for place, limit in limiting.items():
            used = use.get(place, Use())
            use[place] = Use(used.open + 1, used.ready)
            if limit.rate is None:
                levels[place] = levels.get(place, 0) + 1  # so that two cannot count at once
    at = _earliest(limiting, levels, now_us)
    for place, limit in limiting.items():
        if limit.rate is not None:
            levels[place] = max(levels.get(place, 0), at) + limit.interval_us
    return Turn(at, new=True)


def _earliest(limiting: Mapping[str, Limit], levels: Mapping[str, int], now_us: int) -> int:
    """When the buckets of all these places have a turn to give."""
    rated = (each for each in limiting.items() if each[1].rate is not None)
    return max([now_us, *(levels.get(place, 0) - limit.tolerance_us for place, limit in rated)])


def _is_crowded(limiting: Mapping[str, Limit], use: Mapping[str, Use]) -> bool:
    """Whether a command that was never admitted must wait for others to end. What is admitted and
    has not begun does not count: it may wait for the very worker that has this one in hand."""
    return any(
        limit.concurrency is not None and use.get(place, Use()).begun >= limit.concurrency
        for place, limit in limiting.items()
    )


def agents_with_room(agents: Iterable[str], room: Room) -> list[str]:
    """The agents whose own place has room."""
    return [agent for agent in agents if room.has((agent_place(agent),))]
