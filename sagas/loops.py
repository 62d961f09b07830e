"""The loop breaker: whether what was done last only repeats what was done before.

A signature stands for what was done: a hand-off, or a tool with the digest of its arguments. Asked
after each one, `repeating` needs to see no more than the last TRAIL_MAX of them.
"""

from __future__ import annotations

from collections.abc import Sequence

REPEATS = 5  # times that something is done before it counts as a loop
CYCLE_MAX = 4  # signatures in the longest cycle that is looked for
TRAIL_MAX = REPEATS * CYCLE_MAX


def repeating(signatures: Sequence[str]) -> str:
    """What the last signatures repeat, in words; "" if they are no loop.

    A loop is the same signature REPEATS times in a row, or REPEATS times the same cycle of 2 to
    CYCLE_MAX of them, both up to the last one. The shortest is told.
    """
    for length in range(1, CYCLE_MAX + 1):
        tail = signatures[-REPEATS * length :]
        cycle = signatures[-length:]
        if len(tail) == REPEATS * length and list(tail) == list(cycle) * REPEATS:
            return _in_words(cycle)
    return ""


def _in_words(cycle: Sequence[str]) -> str:
    names = ", ".join(f"'{signature}'" for signature in cycle)
    if len(cycle) == 1:
        return f"{names} {REPEATS} times in a row"
    return f"the cycle {names} {REPEATS} times"
