"""A few simulated runs with each run of the tests; many more by `make sim`.

Each runs twice, in different processes, and must come to the same to the last word of its trace.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
FIXED = "1-14"
WITHIN_S = 240.0


def simulated(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m simulation` in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(TESTS)}
    return subprocess.run(
        [sys.executable, "-P", "-m", "simulation", *arguments],
        env=environment,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def seed_of_this_commit() -> str:
    """A seed that is new with each commit, and the same for all who test that commit."""
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return str(int(found[:9], 16) + 1_000_000) if found else "1000000"


def digests(output: str) -> dict[str, str]:
    return dict(re.findall(r"^digest (\d+) (\w+)$", output, re.MULTILINE))


def test_fixed_seeds_and_that_of_this_commit_keep_all_laws_and_run_the_same_in_any_process() -> (
    None
):
    fresh = seed_of_this_commit()
    first = simulated(FIXED, fresh, "--digests")
    print(first.stdout, first.stderr)
    assert first.returncode == 0, f"seed {fresh} is that of this commit"
    again = simulated(FIXED, fresh, "--digests", "--processes", "1")
    assert digests(again.stdout) == digests(first.stdout)
    assert len(digests(first.stdout)) == 15


def test_a_run_needs_a_fixed_order_of_sets() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(TESTS)}
    refused = subprocess.run(
        [sys.executable, "-P", "-m", "simulation", "1"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stderr == "set PYTHONHASHSEED=0: a run must be the same in every process\n"
