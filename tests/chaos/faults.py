"""The faults, by name. Each is caused while work goes on, and tells when recovery could begin.

A fault draws everything from the `rng` it is given, so that a name and a seed make it again.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chaos.recovery import Struck
from chaos.stage import Stage

Cause = Callable[[Stage, random.Random], Awaitable[list[Struck]]]


@dataclass(frozen=True)
class Fault:
    """What is caused, and the work that goes on meanwhile.

    Attributes:
        publishes: some tasks are only put into the stream; not where that stream is deleted.
        mounts: it needs a small file system of its own for the servers' data.
        only_long: too long for the run in the test suite.
        per_s: how many tasks are handed in each second, until the fault is over.
        sagas: what kind of work.
        settle_s: how long all of it may take to end once everything is healed.
    """

    name: str
    cause: Cause
    publishes: bool = True
    mounts: bool = False
    only_long: bool = False
    per_s: float = 20.0
    sagas: tuple[str, ...] = ("trip", "fork", "errand")
    settle_s: float = 60.0


FAULTS: dict[str, Fault] = {}


def fault(name: str, **about: object) -> Callable[[Cause], Cause]:
    """Enter a fault into the list under its name."""

    def enter(cause: Cause) -> Cause:
        assert name not in FAULTS, name
        FAULTS[name] = Fault(name, cause, **about)  # type: ignore[arg-type]
        return cause

    return enter
