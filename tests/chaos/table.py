"""The table: fault by fault, what was played and what it came to."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from chaos.rounds import Result

HEADER = "| fault | rounds | tasks | lost | doubled | stuck | other | recovery s p50 | max |"
RULE = "|---|---|---|---|---|---|---|---|---|"
SECTION = re.compile(r"(## Real faults\n).*?(?=\n## |\Z)", re.DOTALL)
ABOUT = """\
Two coordinators and three processes of four agents each, all their connections through proxies, and
a submitter; sagas with compensations, pivots, steps that fail and journaled tool calls; a service
outside, whose log is the witness.

- *lost*: an accepted task, or a completed step's effect, is not there.
- *doubled*: an effect was applied twice, or stands though no step claims it.
- *stuck*: a task neither ended nor was put before a person.
- *other*: a law of the database was broken, no reason was given, or the fault could not be caused.
- *recovery*: for each call that a killed agent had under way, from the kill until another process
  went on with it; else for each task under way, from the fault's end (a kill: from the kill) until
  its next sign, which includes what its own steps take (up to 0.3 s) and its turn in the queue.
"""
LOST, DOUBLED, STUCK = ("lost",), ("doubled", "left over"), ("stuck",)


def rows(results: Sequence[Result]) -> list[str]:
    """One line a fault, in the order in which they were first played, and the sum."""
    by_fault: dict[str, list[Result]] = {}
    for result in results:
        by_fault.setdefault(result.fault, []).append(result)
    lines = [_row(fault, played) for fault, played in by_fault.items()]
    return [HEADER, RULE, *lines, _row("**all**", results)]


def _row(name: str, played: Sequence[Result]) -> str:
    recoveries = sorted(sign.seconds for result in played for sign in result.recoveries)
    cells = [
        name,
        len(played),
        sum(result.tasks for result in played),
        *(sum(result.count(*clauses) for result in played) for clauses in (LOST, DOUBLED, STUCK)),
        sum(result.count("unexplained", "law") for result in played),
        f"{statistics.median(recoveries):.2f}" if recoveries else "-",
        f"{recoveries[-1]:.2f}" if recoveries else "-",
    ]
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def record(path: Path, seed: int, took_s: float, results: Sequence[Result]) -> None:
    """Write what was found into the page of results, in place of what stood there."""
    said = (
        f"{datetime.now(UTC):%Y-%m-%d}, seed {seed}: {len(results)} rounds in {took_s / 60:.0f} "
        f"minutes.\n{ABOUT}\n"
    )
    text = said + "\n".join(rows(results)) + "\n"
    page = path.read_text()
    assert SECTION.search(page), f"{path} has no section for it"
    path.write_text(SECTION.sub(lambda found: f"{found[1]}\n{text}", page))
