"""Runs seeds, and says what came of them.

PYTHONHASHSEED=0 PYTHONPATH=tests python -m simulation 1-1000
… python -m simulation --replay 17          the trace of one seed
… python -m simulation --shrink 17          the fewest of its faults with which it still fails
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from simulation.run import run
from simulation.seeds import Report, run_all, seeds_of, told_of
from simulation.shrink import shrink

SHOWN_MAX = 5  # failures that are told at length


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulation", description="Simulated runs, by seed.")
    parser.add_argument("seeds", nargs="*", default=[], help="1-1000, or single ones")
    parser.add_argument("--replay", type=int, help="print the trace of this seed")
    parser.add_argument("--shrink", type=int, help="find the fewest faults with which it fails")
    parser.add_argument("--digests", action="store_true", help="print what each seed came to")
    parser.add_argument("--permute", action="store_true", help="run what is ready in any order")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        print("set PYTHONHASHSEED=0: a run must be the same in every process", file=sys.stderr)
        return 2
    if given.replay is not None:
        outcome = run(given.replay, tell=print, permute=given.permute)
        print("\n".join(told_of(outcome, with_trace=False)))
        return 1 if outcome.wrong else 0
    if given.shrink is not None:
        return shrink(given.shrink, print)
    return _all(
        given.seeds or ["1-100"], given.processes, digests=given.digests, permute=given.permute
    )


def _all(seeds: list[str], processes: int, *, digests: bool, permute: bool) -> int:
    began, report = time.monotonic(), Report()
    for outcome in run_all(seeds_of(seeds), processes, permute=permute):
        report.add(outcome)
        if digests:
            print(f"digest {outcome.seed} {outcome.digest}", flush=True)
        if outcome.wrong and len(report.failed) <= SHOWN_MAX:
            print("\n".join(told_of(outcome)), flush=True)
    print("\n".join(report.lines(time.monotonic() - began)))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
