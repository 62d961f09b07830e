"""SIGKILL for agents, the coordinator and nats-server, at moments drawn by seed.

The plan is pure; carrying it out takes a way to find the process that plays a role at the time.
A victim gets no chance to say goodbye, and whoever started it has to bring it back.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headway.coordinator.process import ServerError
from headway.demo.together import together

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


@dataclass(frozen=True, slots=True)
class Returned:
    """A process that plays a killed one's role, seen `at_s` seconds after the start."""

    at_s: float
    victim: str
    pid: int


Find = Callable[[str], int | None]
Tell = Callable[[Killed | Returned], None]


def plan(seed: int, count: int, span_s: float, victims: Sequence[str] = VICTIMS) -> list[Kill]:
    """`count` kills within `span_s` seconds, in order of time.

    Every role has its turn before any has a second one, so as many kills as there are `victims`
    spare nobody.
    """
    chance = random.Random(f"kills/{seed}")  # noqa: S311 - reproducible, not secret
    chosen: list[str] = []
    while len(chosen) < count:
        chosen += chance.sample(victims, len(victims))
    moments = sorted(chance.uniform(QUIET_START_S, span_s) for _ in range(count))
    return [Kill(at_s, victim) for at_s, victim in zip(moments, chosen, strict=False)]


async def carry_out(kills: Iterable[Kill], find: Find, tell: Tell) -> None:
    """Kill as planned, from now on, and see everybody return.

    `find` gives the pid of a role, None while nobody plays it. ServerError when a victim does
    not return.
    """
    start = asyncio.get_running_loop().time()
    await together(_carry_out_one(kill, start, find, tell) for kill in kills)


async def _carry_out_one(kill: Kill, start: float, find: Find, tell: Tell) -> None:
    now = asyncio.get_running_loop().time
    await asyncio.sleep(max(0.0, start + kill.at_s - now()))
    pid = await _found(kill.victim, find)
    while not _kill(pid):
        pid = await _found(kill.victim, find, other_than=pid)
    tell(Killed(now() - start, kill.victim, pid))
    successor = await _found(kill.victim, find, other_than=pid)
    tell(Returned(now() - start, kill.victim, successor))


async def _found(victim: str, find: Find, other_than: int | None = None) -> int:
    """The pid of who plays `victim`, once there is such a process, and another one."""
    try:
        async with asyncio.timeout(VICTIM_WITHIN_S):
            while True:
                pid = find(victim)
                if pid is not None and pid != other_than:
                    return pid
                await asyncio.sleep(VICTIM_POLL_S)
    except TimeoutError as late:
        raise ServerError(
            f"{victim} did not come back within {VICTIM_WITHIN_S:g} s; its log says why"
        ) from late


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
