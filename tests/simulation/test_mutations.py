"""The checkers bite: a few of the deliberate mistakes, each caught by its law.

All of them, and how many seeds each takes: `python -m simulation.mutations`, and tests/RESULTS.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from simulation.mutants import Catch, current, law_of
from simulation.mutations import MUTATIONS

TESTS = Path(__file__).parent.parent
WITHIN_S = 200.0
SEEDS = 20


def test_each_quick_mistake_is_caught_and_the_same_run_without_it_is_sound():
    quick = [each.name for each in MUTATIONS if each.quick]
    found = subprocess.run(
        [sys.executable, "-P", "-m", "simulation.mutations", "--quick", f"--seeds={SEEDS}"],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(TESTS)},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    rows = [line for line in found.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(quick) >= 5, found.stdout + found.stderr
    assert "**not caught**" not in found.stdout
    assert "fails without it" not in found.stdout
    assert found.returncode == 0


def test_no_two_mistakes_have_the_same_name_and_each_changes_something():
    names = [each.name for each in MUTATIONS]
    assert len(set(names)) == len(names) >= 25
    for each in MUTATIONS:
        assert each.changes
        before = [current(owner, name) for owner, name, _ in each.changes]
        with each.patch():
            during = [current(owner, name) for owner, name, _ in each.changes]
        after = [current(owner, name) for owner, name, _ in each.changes]
        assert all(a is not b for a, b in zip(before, during, strict=True)), each.name
        assert [*map(id, before)] == [*map(id, after)], each.name


def test_a_broken_law_is_named_in_few_words():
    assert law_of("task 1 (a): version 3 follows 1\n...") == "1: versions have no gap"
    assert law_of("the tool call x took effect 2 times") == "a tool takes effect once"
    assert law_of("something else") == "something else"


def test_a_mistake_that_is_not_caught_shows_in_the_table():
    assert Catch("m", 40).row() == "| m | **not caught** | 40 | |"
    caught = Catch("m", 2, 2, "7: all", ("store_slow",), sound=False)
    assert caught.row() == "| m | 7: all (the run fails without it, too) | 2 | store slow |"
