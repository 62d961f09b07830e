"""The faults of a cluster, one round each, under load: cause it, look, heal it, measure.

A round ends with the cluster whole. What it returns are seconds: until a task that is submitted
right after the fault has succeeded, and the longest time in which no agent did anything.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cluster.nodes import NODES
from cluster.system import ClusterSystem
from headway.agents.subjects import COMMANDS_STREAM, EVENTS_STREAM, TASKS_STREAM

STREAMS = (TASKS_STREAM, COMMANDS_STREAM, EVENTS_STREAM)

Look = Callable[[str], Awaitable[None]]
"""Called while a fault lasts, with the node that it struck."""


@dataclass(frozen=True)
class Measured:
    went_on_s: float
    gap_s: float


async def leader_killed(system: ClusterSystem, rng: random.Random, look: Look) -> Measured:
    """The leader of a stream is killed, and started again."""
    node = await system.cluster.leader(system.client.connection, rng.choice(STREAMS))
    struck_at = time.time()
    await system.cluster.kill(node)
    went_on_s = await system.goes_on()
    await look(node)
    await system.cluster.start_node(node)
    await system.cluster.whole(system.client.connection)
    return Measured(went_on_s, system.longest_gap(struck_at))


async def meta_leader_killed(system: ClusterSystem, rng: random.Random, look: Look) -> Measured:
    """The leader of JetStream itself is killed, and started again."""
    node = await system.cluster.meta_leader()
    struck_at = time.time()
    await system.cluster.kill(node)
    went_on_s = await system.goes_on()
    await look(node)
    await system.cluster.start_node(node)
    await system.cluster.whole(system.client.connection)
    return Measured(went_on_s, system.longest_gap(struck_at))


async def node_cut_off(system: ClusterSystem, rng: random.Random, look: Look) -> Measured:
    """A stream's leader still serves its clients and hears nothing from the other nodes."""
    node = await system.cluster.leader(system.client.connection, rng.choice(STREAMS))
    struck_at = time.time()
    system.cluster.routes.cut_off(node)
    try:
        went_on_s = await system.goes_on()
        await look(node)
    finally:
        system.cluster.routes.heal()
    await system.cluster.whole(system.client.connection)
    return Measured(went_on_s, system.longest_gap(struck_at))


async def rolling_restart(system: ClusterSystem, rng: random.Random, look: Look) -> Measured:
    """Each node is stopped in order, and started again, once the one before it is back."""
    struck_at = time.time()
    slowest_s = 0.0
    for node in NODES:
        await system.cluster.stop(node)
        await system.cluster.start_node(node)
        slowest_s = max(slowest_s, await system.goes_on())
        await system.cluster.whole(system.client.connection)
    await look("")
    return Measured(slowest_s, system.longest_gap(struck_at))


async def store_deleted(system: ClusterSystem, rng: random.Random, look: Look) -> Measured:
    """A node is killed, loses all that it stored, and comes back empty."""
    node = await system.cluster.leader(system.client.connection, rng.choice(STREAMS))
    struck_at = time.time()
    await system.cluster.kill(node)
    system.cluster.delete_store(node)
    await system.cluster.start_node(node)
    went_on_s = await system.goes_on()
    await look(node)
    await system.cluster.whole(system.client.connection)
    return Measured(went_on_s, system.longest_gap(struck_at))


ROUNDS = {
    "a stream's leader killed": leader_killed,
    "the meta leader killed": meta_leader_killed,
    "a node cut off": node_cut_off,
    "rolling restart": rolling_restart,
    "one node's store deleted": store_deleted,
}
