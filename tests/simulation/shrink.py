"""Fewer faults that still break it: delta debugging over the decisions of a failed run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulation.clocks import Patch
from simulation.run import Outcome, run
from simulation.seeds import told_of

RUNS_MAX = 400


def shrink(seed: int, say: Callable[[str], None], patch: Patch | None = None) -> int:
    """Find a small set of decisions with which a seed still fails; 1 if it fails at all."""
    first = run(seed, patch=patch)
    if not first.wrong:
        say(f"seed {seed} does not fail")
        return 0
    say(f"seed {seed} fails with {len(first.decisions)} faults: {first.wrong[0].splitlines()[0]}")
    runs = 0

    def fails(decisions: Sequence[str]) -> Outcome | None:
        nonlocal runs
        runs += 1
        outcome = run(seed, faults=first.faults, only=decisions, patch=patch)
        return outcome if outcome.wrong else None

    kept, best = list(first.decisions), first
    parts = 2
    while len(kept) > 1 and runs < RUNS_MAX:
        size = max(1, len(kept) // parts)
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            outcome = fails(fewer)
            if outcome is not None:
                kept, best = [each for each in fewer if each in set(outcome.decisions)], outcome
                parts = max(2, parts - 1)
                say(f"  {len(kept)} faults do")
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), 2 * parts)
    lines: list[str] = []
    run(seed, faults=first.faults, only=kept, tell=lines.append, patch=patch)
    say("\n".join(lines[-400:]))
    say("\n".join(told_of(best, with_trace=False)))
    say(f"{len(kept)} of {len(first.decisions)} faults, after {runs} runs:")
    say("\n".join(f"  {decision}" for decision in kept))
    return 1
