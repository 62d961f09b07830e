"""All faults of a cluster, many rounds: PYTHONPATH=tests python -m cluster --seed 1 --rounds 5."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from cluster.nodes import Cluster
from cluster.rounds import ROUNDS, Measured
from cluster.system import system_on
from harness.services import postgres_in


async def nothing(_node: str) -> None:
    return None


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fault", default="")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        postgres = postgres_in(Path(folder, "postgres"))
        await postgres.start()
        cluster = Cluster(Path(folder), rng)
        try:
            await cluster.start()
            async with system_on(cluster, postgres.url, Path(folder)) as system:
                found: dict[str, list[Measured]] = {}
                for _ in range(options.rounds):
                    for name, fault in ROUNDS.items():
                        if options.fault not in name:
                            continue
                        async with system.load.running():
                            measured = await fault(system, rng, nothing)
                        print(name, measured, flush=True)
                        verdict = await system.settled()
                        print(verdict, flush=True)
                        found.setdefault(name, []).append(measured)
        finally:
            await cluster.end()
            await postgres.stop()
            if sys.exc_info()[0] is not None:
                print(
                    *(
                        f"{log}\n{log.read_text()[-3000:]}"
                        for log in Path(folder).glob("*process*.log")
                    )
                )
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
