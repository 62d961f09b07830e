"""Processes that die, stop, freeze and crash."""

from __future__ import annotations

import asyncio
import random
import time

from chaos.faults import fault
from chaos.recovery import Struck
from chaos.stage import COORDINATORS, CREWS, Stage

BACK_AFTER_S = 2.0  # so long a killed process is away: others have to go on


@fault("nothing at all")
async def calm(stage: Stage, rng: random.Random) -> list[Struck]:
    """What the figures are when nothing breaks."""
    await asyncio.sleep(rng.uniform(0.5, 1.0))
    return [Struck(time.time())]


@fault("agent killed")
async def agent_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _killed_and_back(stage, rng.choice(CREWS))


@fault("all agents killed")
async def agents_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _killed_and_back(stage, *CREWS, after_s=0.0)


@fault("coordinator killed")
async def coordinator_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _killed_and_back(stage, rng.choice(COORDINATORS))


@fault("all coordinators killed")
async def coordinators_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _killed_and_back(stage, *COORDINATORS, after_s=0.0)


@fault("agent and coordinator killed")
async def both_kinds_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _killed_and_back(stage, rng.choice(CREWS), rng.choice(COORDINATORS))


@fault("killed again and again")
async def killed_again_and_again(stage: Stage, rng: random.Random) -> list[Struck]:
    """One after the other, each at once replaced."""
    struck = []
    for _ in range(6):
        struck += await _killed_and_back(stage, rng.choice((*CREWS, *COORDINATORS)), after_s=0.0)
        await asyncio.sleep(rng.uniform(0.0, 0.8))
    return struck


@fault("agent told to stop")
async def agent_terminated(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _terminated_and_back(stage, rng.choice(CREWS))


@fault("coordinator told to stop")
async def coordinator_terminated(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _terminated_and_back(stage, rng.choice(COORDINATORS))


@fault("agent frozen")
async def agent_frozen(stage: Stage, rng: random.Random) -> list[Struck]:
    """For less than an `ack_wait`, or for longer: then others have taken over when it thaws."""
    return await _frozen(stage, rng.choice(CREWS), rng.choice([1.0, 3.0, 8.0]))


@fault("coordinator frozen")
async def coordinator_frozen(stage: Stage, rng: random.Random) -> list[Struck]:
    return await _frozen(stage, rng.choice(COORDINATORS), rng.choice([1.0, 3.0, 8.0]))


@fault("agent frozen and thawed again and again")
async def agent_flickers(stage: Stage, rng: random.Random) -> list[Struck]:
    role = rng.choice(CREWS)
    for _ in range(20):
        stage.freeze(role)
        await asyncio.sleep(rng.uniform(0.0, 0.3))
        stage.thaw(role)
        await asyncio.sleep(rng.uniform(0.0, 0.1))
    return [Struck(time.time())]


@fault("agent crashes its process each time", sagas=("trip", "doomed"), per_s=10.0, settle_s=120.0)
async def agent_crashes(stage: Stage, rng: random.Random) -> list[Struck]:
    """Its tasks are parked with the reason; nothing else is the worse for it."""
    stage.let_wreck_work()
    return [Struck(time.time())]


@fault("clock jumps")
async def clock_jumps(stage: Stage, rng: random.Random) -> list[Struck]:
    """Of single processes, by five minutes, forward or back, and back to the truth."""
    for role in rng.sample((*CREWS, *COORDINATORS), 3):
        stage.clocks[role].set_ahead(rng.choice([-300.0, 300.0]))
        await asyncio.sleep(rng.uniform(0.2, 0.8))
    await asyncio.sleep(1.5)
    for moved in stage.clocks.values():
        moved.set_ahead(0.0)
    return [Struck(time.time())]


async def _killed_and_back(
    stage: Stage, *roles: str, after_s: float = BACK_AFTER_S
) -> list[Struck]:
    at = time.time()
    pids = await stage.kill(*roles)
    await asyncio.sleep(after_s)
    await asyncio.gather(*(stage.play(role) for role in roles))
    agents = [pid for role, pid in zip(roles, pids, strict=True) if role in CREWS]
    return [Struck(at, tuple(agents))]


async def _terminated_and_back(stage: Stage, role: str) -> list[Struck]:
    actor, at = stage.roles[role], time.time()
    actor.terminate()
    status = await actor.ended(within_s=20.0)
    assert status == 0, f"{role} ended with status {status} when told to stop; see {actor.log}"
    await stage.play(role)
    return [Struck(at)]


async def _frozen(stage: Stage, role: str, for_s: float) -> list[Struck]:
    stage.freeze(role)
    await asyncio.sleep(for_s)
    stage.thaw(role)
    return [Struck(time.time())]
