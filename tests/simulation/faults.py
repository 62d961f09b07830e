"""What goes wrong: how often, as one value; and each decision that something does, by its name.

A decision is named `kind/place/number`: the number counts the decisions of one kind in one place.
Each (kind, place) draws from a sequence of its own, so a run can be repeated with some of its
faults left out, and the rest stays as near to what it was as may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from random import Random

LASTING = frozenset(
    {
        *("handler_fails", "handler_rejects", "handler_retries", "handler_slow"),
        *("handler_answer_lost", "compensation_fails"),
    }
)
"""What agents do wrong is no fault of the carriers, and all must come to rest in spite of it."""
LASTING_SHARE = 0.3  # of it, once healed: what is tried again with long pauses must end, too


@dataclass(frozen=True)
class Faults:
    """Probabilities: of messages for each hop; of the rest, for each time it could happen."""

    lose: float = 0.01  # a message
    repeat: float = 0.01
    delay: float = 0.02  # by up to some seconds; what follows overtakes it: reordered
    lose_ack_of_store: float = 0.01  # a PubAck
    cut: float = 0.06  # a connection, each second
    crash: float = 0.1  # a process, each second
    crash_at_commit: float = 0.01  # a coordinator, within some callbacks of a commit
    crash_at_effect: float = 0.02  # a worker, within some callbacks of an effect
    freeze_at_effect: float = 0.02  # a worker, within some callbacks of an effect or an intent
    stop: float = 0.03  # a coordinator or a worker, in order, each second
    freeze: float = 0.06  # a process, each second
    slow: float = 0.2  # a process, for its life
    skew: float = 0.5  # a process's clock, for its life
    jump: float = 0.04  # of a process's wall clock, each second
    broker_kill: float = 0.05  # the server, each second: what it had not flushed is lost
    wipe: float = 0.02  # JetStream's store, each second
    store_down: float = 0.03  # PostgreSQL, each second, for a while
    store_refuses: float = 0.01  # a statement, before it was carried out
    store_answer_lost: float = 0.02  # a statement that was carried out
    store_slow: float = 0.02  # a statement, by up to some seconds
    handler_fails: float = 0.15
    handler_rejects: float = 0.15
    handler_retries: float = 0.02
    handler_hangs: float = 0.03
    handler_slow: float = 0.1
    handler_answer_lost: float = 0.08  # the effect is there, and the handler fails
    compensation_fails: float = 0.3
    people: float = 0.05  # a task, of being cancelled at some time

    def without(self, names: Collection[str]) -> Faults:
        return replace(self, **dict.fromkeys(names, 0.0))

    @staticmethod
    def names() -> tuple[str, ...]:
        return tuple(field.name for field in fields(Faults))

    @staticmethod
    def none() -> Faults:
        return Faults().without(Faults.names())


def swarm(faults: Faults, rng: Random) -> Faults:
    """Each run has a random subset of the faults only, at a random strength. What is drawn for one
    kind does not depend on which others there are."""
    seed = rng.getrandbits(64)
    drawn: dict[str, float] = {}
    for name in faults.names():
        own = Random(f"{seed}/{name}")
        strength = own.choice((0.3, 1.0, 1.0, 3.0))
        drawn[name] = min(0.6, getattr(faults, name) * strength) if own.random() > 0.45 else 0.0
    return replace(faults, **drawn)


class Chance:
    """Draws every fault. `only`: of the decisions to do harm, those that are carried out."""

    def __init__(self, seed: int, faults: Faults, only: Collection[str] | None = None) -> None:
        self.faults = faults
        self.healed = False
        self.done: list[str] = []  # decisions to do harm, in order
        self.count: Counter[str] = Counter()
        self.told: Callable[[str], None] = _to_nobody
        self._seed = seed
        self._only = None if only is None else frozenset(only)
        self._places: dict[tuple[str, str], list[int | Random]] = {}

    def rng(self, name: str) -> Random:
        """A sequence of its own."""
        return Random(f"{self._seed}/{name}")

    def hit(self, kind: str, place: str) -> Random | None:
        """Whether this fault happens here and now; if so, what its size is to be drawn from."""
        probability: float = getattr(self.faults, kind)
        if self.healed:
            probability = LASTING_SHARE * probability if kind in LASTING else 0.0
        if not probability:
            return None
        entry = self._places.get((kind, place))
        if entry is None:
            entry = self._places[kind, place] = [0, self.rng(f"{kind}/{place}")]
        number, rng = entry
        assert isinstance(rng, Random)
        assert isinstance(number, int)
        entry[0] = number + 1
        if rng.random() >= probability:
            return None
        name = f"{kind}/{place}/{number}"
        if self._only is not None and name not in self._only:
            return None
        self.done.append(name)
        self.count[kind] += 1
        self.told(name)
        return Random(f"{self._seed}/{name}")

    def heal(self) -> None:
        """From now on nothing goes wrong any more, but for what agents do."""
        self.healed = True


def _to_nobody(_name: str) -> None:
    return
