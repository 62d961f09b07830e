"""Shows that the checkers bite: each deliberate mistake, and how many seeds it took to catch it.

PYTHONHASHSEED=0 PYTHONPATH=tests python -m simulation.mutations
… python -m simulation.mutations --only "timeout" --seeds 50
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import get_context

from simulation.mutants import SEEDS_MAX, Catch, Mutation, caught
from simulation.mutations_agents import AGENTS
from simulation.mutations_coordinator import COORDINATOR
from simulation.mutations_machine import MACHINE

MUTATIONS: tuple[Mutation, ...] = (*COORDINATOR, *MACHINE, *AGENTS)

HEAD = ("| mutation | caught by | seeds | faults in that run |", "|---|---|---|---|")


def catch(number: int, *, seeds: int, explain: bool) -> Catch:
    """What came of the mutation of this number."""
    return caught(MUTATIONS[number], range(1, seeds + 1), explain=explain)


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulation.mutations")
    parser.add_argument("--only", default="", help="those with these words in their name")
    parser.add_argument("--quick", action="store_true", help="only those that the tests show")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="after so many: not caught")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--explain", action="store_true", help="tell which faults it takes")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        print("set PYTHONHASHSEED=0: a run must be the same in every process", file=sys.stderr)
        return 2
    chosen = [
        number
        for number, each in enumerate(MUTATIONS)
        if given.only in each.name and (each.quick or not given.quick)
    ]
    began, missed = time.monotonic(), 0
    print("\n".join(HEAD))
    one = partial(catch, seeds=given.seeds, explain=given.explain)
    for found in _each(one, chosen, given.processes):
        missed += not found.law
        print(found.row(), flush=True)
    print(f"\n{len(chosen)} mutations, {missed} not caught, {time.monotonic() - began:.0f} s")
    return 1 if missed else 0


def _each(one: partial[Catch], chosen: Sequence[int], processes: int) -> Iterator[Catch]:
    if processes == 1:
        yield from map(one, chosen)
        return
    with get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap(one, chosen)


if __name__ == "__main__":
    sys.exit(main())
