"""The faults of a cluster, one round each, under load: cause it, look, heal it, measure.

A round ends with the cluster whole. What it returns are seconds: until a task that is submitted
right after the fault has succeeded, and the longest time in which no agent did anything.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cluster.nodes import NODES, Cluster
from cluster.system import LoadedSystem
from headway.agents.subjects import COMMANDS_STREAM, EVENTS_STREAM, TASKS_STREAM

STREAMS = (TASKS_STREAM, COMMANDS_STREAM, EVENTS_STREAM)

Look = Callable[[str], Awaitable[None]]
"""Called while a fault lasts, with the node that it struck."""


@dataclass(frozen=True)
class Measured:
    went_on_s: float
    gap_s: float


@dataclass
class Site:
    """Where a round takes place."""

    cluster: Cluster
    system: LoadedSystem
    rng: random.Random

    async def leader(self) -> str:
        """The node that leads one of the streams."""
        connection = self.system.client.connection
        return await self.cluster.leader(connection, self.rng.choice(STREAMS))

    async def whole(self) -> None:
        await self.cluster.whole(self.system.client.connection)

    def measured(self, went_on_s: float, struck_at: float) -> Measured:
        return Measured(went_on_s, self.system.longest_gap(struck_at))


async def leader_killed(site: Site, look: Look) -> Measured:
    """The leader of a stream is killed, and started again."""
    return await _killed(site, look, await site.leader())


async def meta_leader_killed(site: Site, look: Look) -> Measured:
    """The leader of JetStream itself is killed, and started again."""
    return await _killed(site, look, await site.cluster.meta_leader())


async def _killed(site: Site, look: Look, node: str) -> Measured:
    struck_at = time.time()
    await site.cluster.kill(node)
    try:
        went_on_s = await site.system.goes_on()
        await look(node)
    finally:
        await site.cluster.start_node(node)
    await site.whole()
    return site.measured(went_on_s, struck_at)


async def node_cut_off(site: Site, look: Look) -> Measured:
    """A stream's leader still serves its clients and hears nothing from the other nodes."""
    node = await site.leader()
    struck_at = time.time()
    site.cluster.routes.cut_off(node)
    try:
        went_on_s = await site.system.goes_on()
        await look(node)
    finally:
        site.cluster.routes.heal()
    await site.whole()
    return site.measured(went_on_s, struck_at)


async def rolling_restart(site: Site, look: Look) -> Measured:
    """Each node is stopped in order, and started again, once the one before it is back."""
    struck_at = time.time()
    slowest_s = 0.0
    for node in NODES:
        await site.cluster.stop(node)
        await site.cluster.start_node(node)
        slowest_s = max(slowest_s, await site.system.goes_on())
        await site.whole()
    return site.measured(slowest_s, struck_at)


async def store_deleted(site: Site, look: Look) -> Measured:
    """JetStream's leader is killed, loses all that it stored, and comes back empty."""
    node = await site.cluster.meta_leader()
    struck_at = time.time()
    await site.cluster.kill(node)
    try:
        went_on_s = await site.system.goes_on()
        await look(node)
    finally:
        site.cluster.delete_store(node)
        await site.cluster.start_node(node)
    await site.system.goes_on()
    await site.whole()
    return site.measured(went_on_s, struck_at)


ROUNDS: dict[str, Callable[[Site, Look], Awaitable[Measured]]] = {
    "a stream's leader killed": leader_killed,
    "the meta leader killed": meta_leader_killed,
    "a node cut off": node_cut_off,
    "rolling restart": rolling_restart,
    "one node's store deleted": store_deleted,
}
