"""All faults of a cluster, many rounds, with a table at the end:

PYTHONPATH=tests python -m cluster --seed 1 --rounds 5
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from cluster.nodes import NODES, Cluster
from cluster.rounds import ROUNDS, Measured, Site
from cluster.system import Verdict, loaded_system
from harness.services import postgres_in

RESULTS = Path(__file__).parents[1] / "RESULTS.md"
SECTION = "## Clusters\n"

Found = dict[str, list[Measured]]


async def nothing(_node: str) -> None:
    return None


async def run(folder: Path, options: argparse.Namespace) -> str:
    """All rounds on one cluster; returns the table."""
    rng = random.Random(options.seed)
    postgres, cluster = postgres_in(folder / "postgres"), Cluster(folder, rng)
    found: Found = {}
    tasks: Counter[str] = Counter()
    before = 0
    verdict = Verdict(Counter(), 0, 0, 0)
    try:
        await postgres.start()
        await cluster.start()
        async with loaded_system(cluster.url, postgres.url, folder, replicas=len(NODES)) as system:
            site = Site(cluster, system, rng)
            for number in range(options.rounds):
                for name, fault in ROUNDS.items():
                    async with system.load.running():
                        measured = await fault(site, nothing)
                    verdict = await system.settled()
                    print(f"{number + 1} {name}: {measured} {verdict}", flush=True)
                    found.setdefault(name, []).append(measured)
                    tasks[name] += verdict.statuses.total() - before
                    before = verdict.statuses.total()
    finally:
        await cluster.end()
        await postgres.stop()
    return table(options.seed, found, tasks, verdict)


def table(seed: int, found: Found, tasks: Counter[str], verdict: Verdict) -> str:
    """Markdown; lost, doubled and stuck are of all rounds together, since the audit is."""
    stuck = verdict.statuses.total() - verdict.statuses["succeeded"]
    stuck -= verdict.statuses["compensated"]
    rows = [
        f"Three nodes (R3), two coordinators, three agents, 25 tasks/s; seed {seed}, "
        f"{datetime.now(UTC):%Y-%m-%d}. After all rounds: {verdict.statuses.total()} tasks, "
        f"{verdict.lost} lost, {verdict.doubled} doubled, {stuck} stuck, "
        f"{verdict.repeated} calls repeated. Elections take nats-server 4 to 9 s.",
        "",
        "| fault | rounds | tasks | a new task ends after, p50/max s | no call for, p50/max s |",
        "|---|---|---|---|---|",
    ]
    for name, all_measured in found.items():
        ends = _p50_max([one.went_on_s for one in all_measured])
        gaps = _p50_max([one.gap_s for one in all_measured])
        rows.append(f"| {name} | {len(all_measured)} | {tasks[name]} | {ends} | {gaps} |")
    return "\n".join(rows) + "\n"


def _p50_max(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} / {max(seconds):.1f}"


def write(section: str) -> None:
    """Put the table in its place among the results."""
    before, _, after = RESULTS.read_text().partition(SECTION)
    rest = after.partition("\n## ")[2]
    RESULTS.write_text(f"{before}{SECTION}\n{section}" + (f"\n## {rest}" if rest else ""))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PostgreSQL's user must get through
        written = asyncio.run(run(Path(folder), options))
    print(written)
    write(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
