"""A failing run is repeated with fewer and fewer of its faults, until all that are left matter."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from unittest import mock

from headway.agents.wire import Wire
from simulation.shrink import shrink

SEEDS = range(1, 40)


async def _complain(wire: Wire) -> None:
    logging.getLogger("headway.agents.wire").error("a connection is lost")


def mistake() -> AbstractContextManager[object]:
    """A product that takes the loss of a connection for an error."""
    return mock.patch.object(Wire, "disconnected", _complain)


def test_the_one_fault_that_breaks_it_is_found_among_many() -> None:
    said: list[str] = []
    failing = next(seed for seed in SEEDS if shrink(seed, said.append, patch=mistake))
    told = "\n".join(said)
    print(f"seed {failing}\n{told}")
    needed = [line.strip() for line in said[-1].splitlines()]
    assert len(needed) == 1
    assert needed[0].split("/")[0] in ("cut", "broker_kill")
    assert "WRONG logged by headway.agents.wire: a connection is lost" in told


def test_what_does_not_fail_is_not_shrunk() -> None:
    said: list[str] = []
    assert shrink(1, said.append) == 0
    assert said == ["seed 1 does not fail"]
