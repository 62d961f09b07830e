"""The long form: 5,000 tasks in flight, everything killed and started again, a table of what came.

`PYTHONPATH=tests python -m storm --tasks 5000 --rate 50`
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from harness.services import nats_in, postgres_in
from harness.system import system_at
from headway.agents.pull import ACK_WAIT_S
from storm.scenario import Outcome, Plan, storm


async def run(plan: Plan, folder: Path) -> Outcome:
    nats, postgres = nats_in(folder / "nats"), postgres_in(folder / "postgres")
    await asyncio.gather(nats.start(), postgres.start())
    try:
        async with system_at(nats, postgres.url, folder) as system:
            return await storm(system, plan)
    finally:
        await nats.kill()
        await postgres.stop()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--burst", type=int, default=11)
    options = parser.parse_args()
    plan = Plan(
        options.tasks,
        options.rate,
        options.burst,
        begun=100,
        latecomers=50,
        urgent=20,
        agents=4,
        options=(),  # as shipped
        ack_wait_s=ACK_WAIT_S,
    )
    folder = Path(tempfile.mkdtemp(prefix="headway-storm-"))
    try:
        outcome = asyncio.run(run(plan, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(f"{datetime.now(UTC):%Y-%m-%d}\n\n| | |\n|---|---|\n")
    for name, value in outcome.rows():
        sys.stdout.write(f"| {name} | {value} |\n")
    return 0 if outcome.holds else 1


if __name__ == "__main__":
    sys.exit(main())
