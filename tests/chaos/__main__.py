"""`python -m chaos --seed 1 --minutes 30`: real processes under load, with real faults."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from chaos import table
from chaos.faults import FAULTS
from chaos.recovery import Sign
from chaos.rounds import Result
from chaos.run import Run, chosen

LATE_S = 5.0  # after that, what was waited for is named
RESULTS = Path(__file__).parent.parent / "RESULTS.md"


def said(result: Result) -> str:
    """One line for a round, and what was found in it."""
    recoveries = sorted(result.recoveries)
    soon = (
        f"{recoveries[len(recoveries) // 2][0]:.2f}/{recoveries[-1][0]:.2f}" if recoveries else "-"
    )
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(result.statuses.items()))
    lines = [
        f"{'held  ' if result.held else 'BROKEN'} {result.seed}: {result.tasks} tasks "
        f"({statuses}), recovery {soon} s, {result.took_s:.0f} s in all",
        *(f"       {count} x {how}" for how, count in result.otherwise.most_common(6)),
        *(f"       late: {late.subject} after {late.seconds:.1f} s" for late in _late(recoveries)),
        *(f"       {finding}" for finding in result.findings[:12]),
    ]
    return "\n".join(lines)


def _late(recoveries: list[Sign]) -> list[Sign]:
    return [sign for sign in recoveries[-3:] if sign.seconds > LATE_S]


def _cancel(task: asyncio.Task[int]) -> None:
    """Told to stop: leave no process and no mount behind."""
    task.cancel()


async def main() -> int:
    parser = argparse.ArgumentParser(description="Real processes under load, with real faults.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0, help="no round begins after that")
    parser.add_argument("--rounds", type=int, help="of each fault; without it, as many as fit")
    parser.add_argument("--fault", action="append", default=[], help="(part of) a name; repeatable")
    parser.add_argument("--keep", action="store_true", help="the logs, though all went well")
    parser.add_argument("--list", action="store_true", help="name the faults")
    parser.add_argument(
        "--record", action="store_true", help=f"write the table into {RESULTS.name}"
    )
    options = parser.parse_args()
    if options.list:
        sys.stdout.write("\n".join(FAULTS) + "\n")
        return 0
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _cancel, asyncio.current_task())
    logging.disable(logging.WARNING)  # of clients that lose their servers: that is what it is about
    folder, began_at = Path(tempfile.mkdtemp(prefix="chaos-")), time.monotonic()
    run = Run(folder, options.seed, lambda result: print(said(result), file=sys.stderr, flush=True))
    faults = chosen(options.fault, long=True)
    await run.play(faults, options.rounds, began_at + options.minutes * 60)
    sys.stdout.write("\n".join(table.rows(run.results)) + "\n")
    if options.record:
        table.record(RESULTS, options.seed, time.monotonic() - began_at, run.results)
    if all(result.held for result in run.results) and not options.keep:
        shutil.rmtree(folder)
        return 0
    sys.stderr.write(f"all logs are in {folder}\n")
    return int(not all(result.held for result in run.results))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
