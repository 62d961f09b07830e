"""All that is in one run: its time, its faults, its servers, and what went wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection
from random import Random
from typing import Any, Protocol

from simulation.broker import EPOCH_S, Broker
from simulation.clocks import Clock, Here
from simulation.faults import Chance, Faults
from simulation.loop import Loop, Timeline
from simulation.store_tables import Tables
from simulation.trace import Trace


class Living(Protocol):
    """A process, as far as the world needs it."""

    name: str
    clock: Clock
    rng: Random


class Violated(Exception):
    """A law does not hold; the run ends here."""


class World:
    """Always holds: of two worlds with the same seed and faults, the same happens in both."""

    def __init__(
        self,
        seed: int,
        faults: Faults,
        only: Collection[str] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`only`: of the decisions to do harm, those that are carried out; `tell` gets the trace
        line by line."""
        self.timeline = Timeline()
        self.trace = Trace(lambda: self.timeline.now, tell)
        self.told = self.trace.add
        self.chance = Chance(seed, faults, only)
        self.chance.told = lambda name: self.told("fault", name)
        self.broker = Broker(self.timeline, self.chance, self.told)
        self.tables = Tables(self.now_ms)
        self.store_is_down = False
        self.permute = False  # what is ready within a process runs in any order
        self.here = Here(Clock(self.timeline), self.chance.rng("world"))
        self.coordinating: Any = None  # the process that makes a coordinator now
        self.graves: list[Loop] = []
        self.on_death: Callable[[Any], None] = _nothing
        self.wrong: list[str] = []

    def now_ms(self) -> int:
        """By the servers' own clock."""
        return EPOCH_S * 1000 + int(self.timeline.now * 1000)

    def enter(self, process: Living) -> None:
        """From now on it is this process's turn."""
        self.here.clock, self.here.rng = process.clock, process.rng

    def died(self, process: Any) -> None:
        self.on_death(process)

    def fail(self, what: str, error: BaseException | None = None) -> None:
        """Something is wrong; the run ends at the next step."""
        self.told("WRONG", what)
        text = "".join(traceback.format_exception(error)) if error is not None else ""
        self.wrong.append(f"{what}\n{text}" if text else what)


def _nothing(_process: Any) -> None:
    return
