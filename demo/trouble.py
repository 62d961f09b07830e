"""What can go wrong with one call to the downstream service, chosen by seed.

Pure: the same seed, order, action and repetition always meet the same trouble, in whatever order
the calls arrive.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

SERVICE_TIME_S = (0.01, 0.06)  # an untroubled call takes this long, from and to
LATE_S = (0.2, 2.5)  # a late one takes this much longer: some outlast the attempt's limit

FAILS_RATE = 0.03
DROPS_RATE = 0.03
HELD_RATE = 0.015
LATE_RATE = 0.015


@dataclass(frozen=True, slots=True)
class Trouble:
    """How the service treats one call.

    Attributes:
        hold_s: seconds before the call is looked at.
        fails: it is answered with an error, and nothing is applied.
        late_s: seconds between applying and answering.
        drops: it is applied, and never answered.
    """

    hold_s: float = 0.0
    fails: bool = False
    late_s: float = 0.0
    drops: bool = False


def trouble(seed: int, order: str, call: str, repetition: int) -> Trouble:
    """The trouble that the `repetition`-th call (0, 1, …) named `call` for `order` meets."""
    chance = random.Random(f"trouble/{seed}/{order}/{call}/{repetition}")  # noqa: S311
    usual_s = chance.uniform(*SERVICE_TIME_S)
    longer_s = chance.uniform(*LATE_S)
    (kind,) = chance.choices(
        ("none", "fails", "drops", "held", "late"),
        (
            1 - FAILS_RATE - DROPS_RATE - HELD_RATE - LATE_RATE,
            FAILS_RATE,
            DROPS_RATE,
            HELD_RATE,
            LATE_RATE,
        ),
    )
    return Trouble(
        hold_s=usual_s + longer_s if kind == "held" else usual_s,
        fails=kind == "fails",
        late_s=longer_s if kind == "late" else 0.0,
        drops=kind == "drops",
    )
