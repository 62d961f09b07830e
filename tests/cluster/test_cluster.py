"""Three NATS servers, two coordinators and three agents, under load, while nodes are harmed.

Measured from the fault to the work going on. nats-server holds elections after 4 to 9 s without a
leader, which is not ours to shorten; what we add to that must be little.
"""

from __future__ import annotations

import re

import pytest
from cluster.examined import troubles
from cluster.nodes import NODES
from cluster.rounds import (
    Look,
    Measured,
    Site,
    node_cut_off,
    rolling_restart,
    store_deleted,
)
from harness.eventually import eventually
from headway.agents.subjects import COMMANDS_STREAM
from headway.cli.checkup import CUT_OFF_SERVER, LEADERLESS
from headway.cli.copies import MISSING
from headway.coordinator.jetstream import ask
from headway.coordinator.streams import streams

pytestmark = [pytest.mark.timed, pytest.mark.asyncio(loop_scope="module")]

ELECTION_S = 9.0
OURS_S = 10.0


async def nothing(_node: str) -> None:
    return None


async def went_through(site: Site, round_of: object, look: Look = nothing) -> Measured:
    """One round under load; afterwards every task has ended, and none was lost or doubled."""
    async with site.system.load.running():
        measured = await round_of(site, look)
    verdict = await site.system.settled()
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert verdict.statuses.keys() == {"succeeded", "compensated"}
    assert measured.went_on_s < ELECTION_S + OURS_S
    return measured


async def test_every_stream_and_consumer_has_a_copy_on_each_node(site: Site) -> None:
    await site.whole()
    assert await troubles(site.system) == []
    wire = site.system.client.connection.wire
    for question in (
        *(f"STREAM.INFO.{stream['name']}" for stream in streams(len(NODES))),
        f"CONSUMER.INFO.{COMMANDS_STREAM}.shop",
    ):
        held = (await ask(wire, question))["cluster"]
        assert {held["leader"], *(copy["name"] for copy in held["replicas"])} == {*NODES}


async def test_the_leader_of_jetstream_killed_and_its_store_deleted(site: Site) -> None:
    async def said(node: str) -> bool:
        found = await troubles(site.system)
        assert {one.state for one in found} == {"note"}, found
        place = f"127.0.0.1:{site.cluster.clients[node]}"
        [server] = [one for one in found if one.check == "NATS"]
        assert server.found == f"{place} does not let us in"
        assert server.remedy == f"{MISSING}: its log says why"
        [events] = [one for one in found if one.check == "stream HW_EVENTS"]
        assert re.fullmatch(
            f"{node} has not been heard of (for \\d+ s|by this leader)", events.found
        )
        assert events.remedy == MISSING
        return True

    async def look(node: str) -> None:
        """Other streams may still be choosing their leaders."""
        await eventually(lambda: said(node), 20, what="the doctor says who is missing")

    await went_through(site, store_deleted, look)


async def test_a_node_cut_off_from_the_others(site: Site) -> None:
    async def said(node: str) -> bool:
        found = await troubles(site.system)
        assert {one.state for one in found} == {"note"}, found
        servers = [one for one in found if one.check == "NATS"]
        assert [one.remedy for one in servers] == [CUT_OFF_SERVER]
        place = f"127.0.0.1:{site.cluster.clients[node]}"
        assert servers[0].found.startswith(f"{node} at {place}, nats-server 2.")
        assert servers[0].found.endswith(": JetStream does not work through it")
        assert {"stream HW_EVENTS", "stream HW_COMMANDS"} <= {one.check for one in found}
        return True

    async def look(node: str) -> None:
        """Its leaders notice after some seconds that nobody answers them."""
        await eventually(lambda: said(node), 20, what="the doctor says who is cut off")

    await went_through(site, node_cut_off, look)


async def test_all_nodes_restarted_one_after_the_other(site: Site) -> None:
    await went_through(site, rolling_restart)


async def test_the_doctor_says_that_most_nodes_are_down(site: Site) -> None:
    """Last: nothing works any more."""
    leader = await site.cluster.meta_leader()
    other = next(node for node in NODES if node != leader)
    for node in (leader, other):
        await site.cluster.kill(node)

    async def said() -> bool:
        found = {one.check: one for one in await troubles(site.system)}
        assert found["JetStream"].found == "has no leader", found
        return found["JetStream"].remedy == LEADERLESS

    await eventually(said, 60, what="the doctor says that there is no leader")
