"""Deliberate mistakes: how one is put into the product for a run, and how soon it is caught.

A mutation that nothing catches tells of a hole: in the laws, or in the faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest import mock

from simulation import run as run_module
from simulation.faults import Faults, swarm
from simulation.run import Outcome, run
from simulation.world import World

SEEDS_MAX = 400  # after so many a mutation counts as not caught
MUTATED = "/simulation/mutations_"  # where mistakes are: an error that comes from there is no catch

Make = Callable[[Any], Any]
"""Gives what is to stand in the place of what it is given."""
Change = tuple[Any, str, Make]
"""Of which object or table, which attribute or entry, and what it becomes."""


@dataclass(frozen=True)
class Mutation:
    """A mistake. `faults` are raised to at least this in each run, beside what the seed draws;
    with `quiet`, nothing else goes wrong."""

    name: str
    changes: tuple[Change, ...]
    faults: dict[str, float] = field(default_factory=dict)
    quiet: bool = False
    sagas: tuple[str, ...] = ()  # those that are handed in; none: what the seed draws
    quick: bool = False  # caught within so few seeds that the tests show it each time

    @contextmanager
    def patch(self) -> Iterator[None]:
        """Holds while the product has the mistake, and the sagas are those of the mutation."""
        with ExitStack() as stack:
            if self.sagas:
                stack.enter_context(_replaced(run_module, "desk_of", wrapped(self._desk)))
            for owner, name, make in self.changes:
                stack.enter_context(_replaced(owner, name, make))
            yield

    def _desk(self, original: Any, rng: Random, tasks: int, seconds: float) -> Any:
        desk = original(rng, tasks, seconds)
        wanted = [(rng.choice(self.sagas), at) for _, at in desk.wanted]
        return replace(desk, wanted=wanted)

    def faults_of(self, seed: int) -> Faults:
        """What goes wrong in the run of this seed."""
        if self.quiet:
            return replace(Faults.none(), **self.faults)
        drawn = swarm(Faults(), World(seed, Faults.none()).chance.rng("swarm"))
        raised = {name: max(least, getattr(drawn, name)) for name, least in self.faults.items()}
        return replace(drawn, **raised)


@dataclass(frozen=True)
class Catch:
    """How a mutation was caught, if it was."""

    mutation: str
    seeds: int
    seed: int = 0
    law: str = ""
    faults: tuple[str, ...] = ()  # kinds that were injected; or, if asked, that it takes
    sound: bool = True  # without the mutation the same run breaks no law

    def row(self) -> str:
        """As a line of a table."""
        if not self.law:
            return f"| {self.mutation} | **not caught** | {self.seeds} | |"
        faults = ", ".join(name.replace("_", " ") for name in self.faults) or "none"
        mark = "" if self.sound else " (the run fails without it, too)"
        return f"| {self.mutation} | {self.law}{mark} | {self.seeds} | {faults} |"


def caught(mutation: Mutation, seeds: Sequence[int], *, explain: bool) -> Catch:
    """Run seeds until one breaks a law. With `explain`, find out which faults it takes."""
    for count, seed in enumerate(seeds, 1):
        faults = mutation.faults_of(seed)
        outcome = run(seed, faults=faults, patch=mutation.patch)
        if outcome.wrong:
            if MUTATED in outcome.wrong[0]:
                raise AssertionError(f"{mutation.name}: it does not fit the product any more")
            kinds = _needed(mutation, outcome) if explain else tuple(sorted(outcome.injected))
            bare = replace(mutation, changes=())
            sound = not run(seed, faults=faults, patch=bare.patch).wrong
            return Catch(mutation.name, count, seed, law_of(outcome.wrong[0]), kinds, sound)
    return Catch(mutation.name, len(seeds))


def law_of(wrong: str) -> str:
    """Which law a run broke, in few words."""
    text = wrong.splitlines()[0]
    for mark, law in _LAWS:
        if mark in text:
            return law
    return text[:60]


def _needed(mutation: Mutation, outcome: Outcome) -> tuple[str, ...]:
    """The kinds of faults that cannot be left out."""
    faults = outcome.faults
    unused = [name for name in Faults.names() if not outcome.injected.get(name)]
    faults = faults.without(unused)
    for name in sorted(outcome.injected):
        fewer = faults.without([name])
        if run(outcome.seed, faults=fewer, patch=mutation.patch).wrong:
            faults = fewer
    return tuple(name for name in Faults.names() if getattr(faults, name))


def _replaced(owner: Any, name: str, make: Make) -> AbstractContextManager[Any]:
    instead_of = make(current(owner, name))
    if isinstance(owner, dict):
        return mock.patch.dict(owner, {name: instead_of})
    return mock.patch.object(owner, name, instead_of)


def current(owner: Any, name: str) -> Any:
    """What stands there now: of an object, or in a table."""
    return owner[name] if isinstance(owner, dict) else getattr(owner, name)


def instead(value: Any) -> Make:
    """Whatever it was, it becomes this."""
    return lambda _original: value


def wrapped(function: Callable[..., Any]) -> Make:
    """It becomes `function`, which is given the original first."""

    def make(original: Any) -> Any:
        def method(*arguments: Any, **options: Any) -> Any:
            return function(original, *arguments, **options)

        return method

    return make


_LAWS: tuple[tuple[str, str], ...] = (
    ("counts though epoch", "a failure counts for its epoch only"),
    ("its journal does not fit", "a journal fits its handler"),
    ("is run: no intent", "a tool's run has a committed intent"),
    ("is run: another has had", "who has lost its journal runs no tool"),
    ("is run: call", "open calls are settled first"),
    ("leaves calls open", "a step that is done leaves no call open"),
    ("it has another holder", "each opening of a journal has its own epoch"),
    ("has opened it", "only the outstanding attempt opens a journal"),
    ("though nobody has answered", "a command is acked when it is answered"),
    ("was acked and is not stored", "a submission is acked when it is stored"),
    ("stays lost", "7: no dispatch stays lost"),
    ("is not its state", "1: the history folds to the state"),
    ("version ", "1: versions have no gap"),
    (" became ", "2: an end is an end"),
    ("no timer", "3: what goes on has a timer"),
    ("though attempt", "4: one attempt at a time"),
    ("follows attempt", "4: attempts are counted"),
    ("epoch", "4: epochs grow"),
    ("is undone before", "5: undone in reverse order"),
    ("past the pivot", "5: nothing past the pivot is undone"),
    ("past the point of no return", "5: no way back after the pivot"),
    ("took effect before", "4: in the order of the steps"),
    ("effect of", "6: no effect is left"),
    ("has no effect", "6: no effect is missing"),
    ("is not undone with", "6: children go with their parents"),
    ("not at rest", "7: all comes to rest"),
    ("stays lost", "7: no dispatch stays lost"),
    ("taken over though", "7: nothing is taken over without need"),
    ("is begun", "4: nothing is begun that is not wanted"),
    ("published again though", "4: nothing is published again that is there"),
    ("logged by", "no error is logged"),
    ("step ", "the state is sound"),
    ("is accepted and", "8: what was accepted is not lost"),
    ("was accepted and is lost", "8: what was accepted is not lost"),
    ("that is not stored", "nothing happens before it is stored"),
    ("was acked", "an answer is acked when it has counted"),
    ("was shown as", "what people were shown is so"),
    ("took effect 2 times", "a tool takes effect once"),
    ("took effect", "a tool takes effect once"),
)

__all__ = [
    "SEEDS_MAX",
    "Catch",
    "Mutation",
    "caught",
    "current",
    "instead",
    "law_of",
    "wrapped",
]
