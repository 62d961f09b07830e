"""Many seeds, several processes, one report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context

from simulation.run import Outcome, run

TRACE_SHOWN = 60  # lines before the end


def seeds_of(words: Iterable[str]) -> list[int]:
    """From "1-1000" and "17" to seeds."""
    found: list[int] = []
    for word in words:
        first, dash, last = word.partition("-")
        found += range(int(first), int(last) + 1) if dash else [int(first)]
    return found


def run_all(seeds: Sequence[int], processes: int, *, permute: bool = False) -> Iterator[Outcome]:
    """What came of each, as soon as it is known."""
    one = partial(run, permute=permute)
    if processes == 1 or len(seeds) == 1:
        yield from map(one, seeds)
        return
    with get_context("fork").Pool(processes, maxtasksperchild=200) as pool:
        yield from pool.imap_unordered(one, seeds, chunksize=4)


class Report:
    """All runs together."""

    def __init__(self) -> None:
        self.failed: list[int] = []
        self._runs = 0
        self._steps = 0
        self._virtual_s = 0.0
        self._real_s = 0.0
        self._states: set[int] = set()
        self._tasks: Counter[str] = Counter()
        self._injected: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        self._runs += 1
        self._steps += outcome.steps
        self._virtual_s += outcome.virtual_s
        self._real_s += outcome.real_s
        self._states |= outcome.states
        self._tasks += outcome.tasks
        self._injected += outcome.injected
        if outcome.wrong:
            self.failed.append(outcome.seed)

    def lines(self, wall_s: float) -> list[str]:
        faults = ", ".join(f"{kind} {count}" for kind, count in sorted(self._injected.items()))
        tasks = ", ".join(f"{status} {count}" for status, count in sorted(self._tasks.items()))
        return [
            f"{self._runs} seeds in {wall_s:.1f} s ({self._runs / wall_s:.1f} a second); "
            f"{self._steps} steps ({self._steps / wall_s:.0f} a second), "
            f"{self._virtual_s:.0f} s of simulated time",
            f"tasks: {tasks}; {len(self._states)} distinct states",
            f"faults injected: {sum(self._injected.values())} ({faults})",
            f"failed: {', '.join(map(str, sorted(self.failed))) or 'none'}",
        ]


def told_of(outcome: Outcome, *, with_trace: bool = True) -> list[str]:
    """A run as people want to read it when it failed."""
    trace = outcome.trace[-TRACE_SHOWN:] if with_trace else []
    return [
        *trace,
        f"seed {outcome.seed}: {outcome.virtual_s:.1f} s simulated, {outcome.steps} steps, "
        f"{len(outcome.decisions)} faults, digest {outcome.digest}",
        f"  {outcome.faults}",
        *(f"  WRONG: {wrong}" for wrong in outcome.wrong),
    ]
