"""A short run of real faults: what `make chaos` does for half an hour, for less than a minute."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest
from chaos import table
from chaos.__main__ import said
from chaos.run import Run, chosen

FAULTS = (
    "agent killed",
    "coordinator killed",
    "agent frozen and thawed again and again",
    "clock jumps",
    "nats-server killed",
    "PostgreSQL killed",
    "JetStream's store deleted",
    "junk on every subject",
)
WITHIN_S = 35.0  # no round begins after that


async def test_whatever_breaks_nothing_is_lost_doubled_or_stuck(tmp_path: Path) -> None:
    """As many of them as there is time for, in an order that is drawn."""
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"python -m chaos --seed {seed} plays the same\n")
    run = Run(tmp_path, seed, lambda result: sys.stdout.write(f"{said(result)}\n"))
    faults = [fault for fault in chosen(FAULTS, long=False) if fault.name in FAULTS]
    random.Random(seed).shuffle(faults)
    await run.play(faults, 1, time.monotonic() + WITHIN_S)
    sys.stdout.write("\n".join(table.rows(run.results)) + "\n")
    broken = [said(result) for result in run.results if not result.held]
    assert broken == [], "\n".join(broken)
    assert run.results


def test_every_fault_is_known_by_its_name() -> None:
    assert {fault.name for fault in chosen((), long=True)} >= set(FAULTS)
    with pytest.raises(SystemExit, match="there is no such fault"):
        chosen(("an earthquake",), long=True)


def test_what_is_recorded_takes_the_place_of_what_stood_there(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text("# Results\n\n## Real faults\n\nold\n\n## Clusters\n\nkept\n")
    table.record(page, 7, 60.0, [])
    text = page.read_text()
    assert "old" not in text
    assert text.endswith("\n\n## Clusters\n\nkept\n")
    assert "seed 7: 0 rounds in 1 minutes" in text
