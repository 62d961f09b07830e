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
LOST, DOUBLED, STUCK = ("lost",), ("doubled", "left over"), ("stuck",)


def rows(results: Sequence[Result]) -> list[str]:
    """One line a fault, in the order in which they were first played, and the sum."""
    by_fault: dict[str, list[Result]] = {}
    for result in results:
        by_fault.setdefault(result.fault, []).append(result)
    lines = [_row(fault, played) for fault, played in by_fault.items()]
    return [HEADER, RULE, *lines, _row("**all**", results)]


def _row(name: str, played: Sequence[Result]) -> str:
    recoveries = sorted(seconds for result in played for seconds in result.recoveries_s)
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
    said = f"""\
{datetime.now(UTC):%Y-%m-%d}, seed {seed}, {len(results)} rounds in {took_s / 60:.0f} minutes.
Two coordinators, three processes of four agents each, every one of their connections through a proxy; sagas with
compensations, pivots, steps that fail, and journaled tool calls; a service outside whose log is the witness.
*lost*: an accepted task, or a completed step's effect, is not there. *doubled*: an effect was applied twice, or
stands though it was undone. *stuck*: not ended, and nobody told. *other*: a law of the database broken, or no
reason given. *recovery*: for each call that a killed agent had under way, until another process goes on with it;
for everything else, for each task under way, from the fault's end (a kill: from the kill) until its next sign.

"""
    text = said + "\n".join(rows(results)) + "\n"
    page = path.read_text()
    assert SECTION.search(page), f"{path} has no section for it"
    path.write_text(SECTION.sub(lambda found: f"{found[1]}\n{text}", page))
