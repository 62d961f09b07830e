"""One run: a seed, a world, processes, faults; then it heals, and all must come to rest."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from unittest import mock

from headway.coordinator import app
from headway.coordinator.app import Coordinator
from headway.coordinator.settings import Settings
from simulation.answers import Answers
from simulation.carriage import Carriage
from simulation.clocks import Patch, replaced
from simulation.crew import work
from simulation.downstream import Downstream
from simulation.faults import Faults, swarm
from simulation.laws import Laws
from simulation.nemesis import Nemesis
from simulation.people import Desk, desk_of, hand_in, step_in
from simulation.process import Process
from simulation.shapes import AGENTS
from simulation.statements import StoreLine
from simulation.store import SimulatedStore
from simulation.tool_laws import ToolLaws
from simulation.world import World

CONVERGE_S = 300.0  # after it healed
REST_S = 12.0  # in which nothing more may go wrong
SETTINGS = Settings(nats_url="nats://simulated", postgres_url="postgresql://simulated")


@dataclass
class Outcome:
    """What came of a run."""

    seed: int
    faults: Faults
    wrong: list[str] = field(default_factory=list)
    digest: str = ""
    steps: int = 0
    virtual_s: float = 0.0
    tasks: Counter[str] = field(default_factory=Counter)
    states: set[int] = field(default_factory=set)
    injected: Counter[str] = field(default_factory=Counter)
    decisions: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    real_s: float = 0.0


def run(
    seed: int,
    *,
    faults: Faults | None = None,
    only: Collection[str] | None = None,
    tell: Callable[[str], None] | None = None,
    patch: Patch | None = None,
    permute: bool = False,
) -> Outcome:
    """Run one seed. `faults` instead of those that it draws; `only` these decisions of them;
    `patch` changes the product while it runs; `permute` runs what is ready in any order."""
    began = time.perf_counter()
    chosen = World(seed, Faults.none()).chance.rng("swarm")
    faults = swarm(Faults(), chosen) if faults is None else faults
    world = World(seed, faults, only, tell)
    world.permute = permute
    with staged(world, patch):
        play = _Play(world)
        play.until_rest()
        outcome = Outcome(seed, faults, list(world.wrong), world.trace.digest())
        bury(world, play.processes)
    outcome.steps = play.steps()
    outcome.virtual_s = world.timeline.now
    outcome.tasks.update(row.status for row in world.tables.tasks.values())
    outcome.states = play.laws.states
    outcome.injected = world.chance.count
    outcome.decisions = world.chance.done
    outcome.trace = world.trace.last()
    outcome.real_s = time.perf_counter() - began
    return outcome


@contextmanager
def staged(world: World, patch: Patch | None = None) -> Iterator[None]:
    """Have the product run in this world: its time, its randomness, its servers."""
    with ExitStack() as stack:
        stack.enter_context(_Complaints(world))
        stack.enter_context(replaced(world.here))
        stack.enter_context(mock.patch.object(app, "Store", partial(_store, world)))
        stack.enter_context(mock.patch.object(app, "connect", _connect))
        if patch is not None:
            stack.enter_context(patch())
        yield


class _Play:
    """The processes of a run, and its two phases."""

    def __init__(self, world: World) -> None:
        self.world = world
        rng = world.chance.rng("play")
        self.faulty_s = rng.uniform(6.0, 24.0)
        self.downstream = Downstream(world)
        self.desk: Desk = desk_of(rng, rng.randint(2, 12), self.faulty_s * 0.8)
        self.laws = Laws(world, self.downstream, self.desk)
        self.carriage = Carriage(world, self.laws, self.downstream)
        self.answers = Answers(world, self.laws)
        self.tools = ToolLaws(world, self.laws, self.downstream)
        self.processes = [
            *(
                Process(world, f"coordinator{number}", coordinate)
                for number in range(rng.choice((1, 2, 2)))
            ),
            *(
                Process(
                    world, f"worker{number}", partial(work, downstream=self.downstream, names=names)
                )
                for number, names in enumerate(_manning(rng.choice((1, 2, 3))))
            ),
            Process(world, "client", partial(hand_in, desk=self.desk)),
            Process(world, "people", partial(step_in, downstream=self.downstream)),
        ]
        self.nemesis = Nemesis(world, self.processes, self.desk.lose)

    def until_rest(self) -> None:
        """Faults for a while; then none, and everything must come to rest within CONVERGE_S."""
        world, timeline = self.world, self.world.timeline
        self._until(self.faulty_s)
        if world.wrong:
            return
        self.nemesis.heal()
        bound = timeline.now + CONVERGE_S
        while timeline.now < bound and not world.wrong:
            if self.desk.submitted_all and not self.laws.unsettled():
                break
            self._until(timeline.now + 1.0)
            self.carriage.look(self.processes)
        if world.wrong:
            return
        left = self.laws.unsettled()
        if left or not self.desk.submitted_all:
            left = left or ["not all tasks were handed in"]
            world.fail(f"not at rest {CONVERGE_S:.0f} s after the last fault: {'; '.join(left)}")
            return
        self._until(timeline.now + REST_S)
        if not world.wrong:
            self.laws.at_rest()
            self.carriage.at_rest()
            self.tools.at_rest()

    def _until(self, when: float) -> None:
        timeline, wrong = self.world.timeline, self.world.wrong
        while timeline.now < when and not wrong and timeline.step():
            pass

    def steps(self) -> int:
        return sum(
            loop.steps for loop in (*(each.loop for each in self.processes), *self.world.graves)
        )


def bury(world: World, processes: Sequence[Process]) -> None:
    """End all processes, so that nothing that Python closes of them has any effect."""
    for process in processes:
        process.die_quietly()
    world.timeline.clear()
    world.broker.forget_all()
    world.coordinating = None
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of coroutines that will never be awaited
            for loop in (*(each.loop for each in processes), *world.graves):
                loop.kept.clear()
            gc.collect()
    finally:
        sys.unraisablehook = hook


def _manning(workers: int) -> list[tuple[str, ...]]:
    """Which agents each process works for."""
    if workers == 1:
        return [AGENTS]
    if workers == 2:
        return [AGENTS, AGENTS]
    return [AGENTS[:2], AGENTS[1:], (AGENTS[0], AGENTS[2])]


async def coordinate(process: Process) -> None:
    """The main of a coordinator."""
    process.world.coordinating = process
    await Coordinator(SETTINGS).run(process.stop)


def _store(world: World, _url: str) -> SimulatedStore:
    return SimulatedStore(world.tables, StoreLine(world.coordinating))


async def _connect(url: str, *, name: str, **options: object) -> object:
    loop = asyncio.get_running_loop()
    return await loop.process.connect(url, name=name, **options)


class _Complaints(logging.Handler):
    """What is logged as an error is one: nothing that goes wrong outside may lead to it."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world
        self._disabled = logging.root.manager.disable

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._world.fail(f"logged by {record.name}: {record.getMessage()}", error)

    def __enter__(self) -> None:
        logging.disable(logging.WARNING)
        logging.root.addHandler(self)

    def __exit__(self, *_exc: object) -> None:
        logging.root.removeHandler(self)
        logging.disable(self._disabled)
