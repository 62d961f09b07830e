"""Clocks and chance of a simulated process, and putting them in the place of the real ones.

While a run is going on, `time.time` and its kin tell the time of the process whose turn it is, and
what asks the system for randomness gets it from that process's seed.
"""

from __future__ import annotations

import gc
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from simulation.broker import EPOCH_S
from simulation.loop import Timeline

_REAL_RANDOM = random.Random


class Clock:
    """A process's own idea of the time: skewed, drifting, and sometimes jumping."""

    def __init__(self, timeline: Timeline, skew_s: float = 0.0, rate: float = 1.0) -> None:
        self.skew_s = skew_s
        self.rate = rate
        self._timeline = timeline

    def monotonic(self) -> float:
        return 1_000.0 + self._timeline.now * self.rate

    def wall(self) -> float:
        return EPOCH_S + self._timeline.now * self.rate + self.skew_s

    def settle(self) -> None:
        """Once healed: it shows what the servers' clocks show, or nearly."""
        self.skew_s = max(-0.5, min(0.5, self.skew_s)) + self._timeline.now * (1 - self.rate)

    def until(self, monotonic: float) -> float:
        """When, in the world's time, `monotonic` is reached."""
        return (monotonic - 1_000.0) / self.rate


class Here:
    """Whose turn it is: what its clock shows, and its randomness."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self.clock = clock
        self.rng = rng

    def wall(self) -> float:
        return self.clock.wall()

    def wall_ns(self) -> int:
        return int(self.clock.wall() * 1e9)

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def monotonic_ns(self) -> int:
        return int(self.clock.monotonic() * 1e9)

    def bytes(self, size: int) -> bytes:
        return self.rng.randbytes(size)

    def uniform(self, least: float, most: float) -> float:
        return self.rng.uniform(least, most)

    def random(self) -> float:
        return self.rng.random()


@contextmanager
def replaced(here: Here) -> Iterator[None]:
    """Have the clocks and the randomness of `here` instead of the real ones."""

    class Seeded(_REAL_RANDOM):
        """`random.Random`, seeded by the process instead of the system."""

        def seed(self, a: Any = None, version: int = 2) -> None:
            super().seed(here.rng.getrandbits(64) if a is None else a, version)

    places: list[tuple[Any, str, Any]] = [
        (time, "time", here.wall),
        (time, "time_ns", here.wall_ns),
        (time, "monotonic", here.monotonic),
        (time, "monotonic_ns", here.monotonic_ns),
        (time, "perf_counter", here.monotonic),
        (time, "perf_counter_ns", here.monotonic_ns),
        (os, "urandom", here.bytes),
        (os, "getpid", lambda: 1),
        (socket, "gethostname", lambda: "simulated"),
        (random, "_urandom", here.bytes),
        (random, "Random", Seeded),
        (random, "uniform", here.uniform),
        (random, "random", here.random),
    ]
    kept = [(module, name, getattr(module, name)) for module, name, _ in places]
    collecting = gc.isenabled()
    gc.disable()
    try:
        for module, name, instead in places:
            setattr(module, name, instead)
        yield
    finally:
        for module, name, real in kept:
            setattr(module, name, real)
        if collecting:
            gc.enable()


Patch = Callable[[], Any]
"""Makes a context manager: what it does to the product holds during a run."""
