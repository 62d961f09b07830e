"""SIGKILL for agents, the coordinator and nats-server, at moments drawn by seed.

The plan is pure; carrying it out takes a way to find the process that plays a role at the time.
A victim gets no chance to say goodbye, and whoever started it has to bring it back.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

AGENTS = ("inventory", "payments", "warehouse", "mail")
COORDINATOR = "coordinator"
NATS = "nats-server"
VICTIMS = (*AGENTS, COORDINATOR, NATS)

QUIET_START_S = 1.0  # nobody is killed before the first orders are under way
VICTIM_POLL_S = 0.05
VICTIM_WITHIN_S = 15.0  # so long a victim of an earlier kill may take to come back


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: when, in seconds after the start, and who plays the role that is killed."""

    at_s: float
    victim: str


@dataclass(frozen=True, slots=True)
class Killed:
    """A kill that was carried out, `at_s` seconds after the start."""

    at_s: float
    victim: str
    pid: int


def plan(seed: int, count: int, span_s: float) -> list[Kill]:
    """`count` kills within `span_s` seconds, in order of time.

    Every role has its turn before any has a second one, so six kills or more spare nobody.
    """
    chance = random.Random(f"kills/{seed}")  # noqa: S311 - reproducible, not secret
    victims: list[str] = []
    while len(victims) < count:
        victims += chance.sample(VICTIMS, len(VICTIMS))
    moments = sorted(chance.uniform(QUIET_START_S, span_s) for _ in range(count))
    return [Kill(at_s, victim) for at_s, victim in zip(moments, victims, strict=False)]


async def carry_out(
    kills: Sequence[Kill],
    find: Callable[[str], int | None],
    told: Callable[[Killed], None],
) -> None:
    """Kill as planned from now on. `find` gives the pid of a role, None while it is down.

    TimeoutError when a victim does not come back from an earlier kill.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    for kill in kills:
        await asyncio.sleep(max(0.0, start + kill.at_s - loop.time()))
        pid = await _kill_one(kill.victim, find)
        told(Killed(loop.time() - start, kill.victim, pid))


async def _kill_one(victim: str, find: Callable[[str], int | None]) -> int:
    """Send SIGKILL to whoever plays `victim`, once there is such a process."""
    try:
        async with asyncio.timeout(VICTIM_WITHIN_S):
            while True:
                pid = find(victim)
                if pid is not None and _kill(pid):
                    return pid
                await asyncio.sleep(VICTIM_POLL_S)
    except TimeoutError as late:
        raise TimeoutError(
            f"{victim} did not come back within {VICTIM_WITHIN_S:g} s; its log says why"
        ) from late


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
