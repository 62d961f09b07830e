"""Faults that overlap: several at once, drawn from those that do not get into each other's way."""

from __future__ import annotations

import asyncio
import random

from chaos.faults import fault
from chaos.link_faults import cut, delayed, half_closed, on_each_kind
from chaos.process_faults import (
    agent_frozen,
    clock_jumps,
    coordinator_killed,
    coordinator_terminated,
)
from chaos.recovery import Struck
from chaos.server_faults import nats_killed, postgres_killed, store_deleted
from chaos.stage import Stage

AT_ONCE = 3


@fault("three faults at once", publishes=False, settle_s=120.0)
async def three_at_once(stage: Stage, rng: random.Random) -> list[Struck]:
    """One of each row at most: a process is not killed twice, nor a server restarted twice."""
    kinds = [
        [coordinator_killed, coordinator_terminated],
        [agent_frozen],
        [clock_jumps],
        [nats_killed, store_deleted],
        [postgres_killed],
        [_links],
    ]
    drawn = [rng.choice(kind) for kind in rng.sample(kinds, AT_ONCE)]
    struck = await asyncio.gather(*(cause(stage, random.Random(rng.random())) for cause in drawn))
    return [max((each for found in struck for each in found), key=lambda each: each.at)]


async def _links(stage: Stage, rng: random.Random) -> list[Struck]:
    return await on_each_kind(stage, rng, rng.choice([cut, half_closed, delayed]))
