"""What a coordinator that is gone was given goes to another one at once; against real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import uuid4

import pytest
from harness.eventually import eventually
from headway.agents import Connection, connect
from headway.agents.alive import Alive
from headway.agents.pull import ACK, Delivery, Pull
from headway.agents.subjects import ASK_AGAIN, COORDINATOR, EVENTS_STREAM, PEERS, event_subject
from headway.coordinator.held import Held
from headway.coordinator.jetstream import ask
from headway.coordinator.rollcall import RollCall
from headway.coordinator.store import Store
from headway.coordinator.succession import Succession
from headway.coordinator.sweep import OTHERS_AGE_MS
from headway.coordinator.topology import Topology


class Coordinator:
    """As far as it pulls events, holds them and is there."""

    def __init__(self, connection: Connection) -> None:
        wire, self.name = connection.wire, str(uuid4())
        self.connection = connection
        self.held = Held(wire.publish)
        self.got: list[Delivery] = []
        taking = self.held.taking(EVENTS_STREAM, self.got.append)
        self._pull = Pull(wire, EVENTS_STREAM, COORDINATOR, taking, lambda: 64)
        self._alive = Alive(wire, PEERS, self.name, self.held.names)
        self.looked_over: list[int | None] = []

    async def begin(self, store: Store) -> None:
        roll_call = RollCall(self.connection.wire, self.name)
        await roll_call.begin()
        await self._alive.begin()
        self.succession = Succession(self.connection.wire, store, roll_call, self._look_over)
        await store.fetch("beat", self.name)

    async def _look_over(self, due_before_ms: int | None, age_ms: int) -> int:
        assert age_ms == OTHERS_AGE_MS
        self.looked_over.append(due_before_ms)
        return 0

    def pull(self) -> None:
        self._pulling = asyncio.create_task(self._pull.run())

    async def rest(self) -> None:
        self._pulling.cancel()
        with suppress(asyncio.CancelledError):
            await self._pulling

    async def die(self) -> None:
        """Its connection is closed and nothing is said."""
        await self.rest()
        await self.connection.close()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    store = Store(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def pair(nats_url: str, store: Store) -> AsyncIterator[tuple[Coordinator, Coordinator]]:
    """Two coordinators; the first one has been given three events, and the second pulls."""
    async with await connect(nats_url, name="one") as one, await connect(nats_url, name="b") as two:
        await Topology(one, 1).declare([])
        first, second = Coordinator(one), Coordinator(two)
        for each in (first, second):
            await each.begin(store)
        first.pull()
        await published(one, 3)
        await eventually(lambda: len(first.got) == 3)
        second.pull()
        yield first, second
        await second.die()


async def published(connection: Connection, count: int) -> None:
    for each in range(count):
        await connection.nc.jetstream().publish(event_subject("ag", f"task-{each}"), b"{}")


def sequences(coordinator: Coordinator) -> list[int]:
    return sorted(each.sequence for each in coordinator.got)


async def test_what_a_lost_one_was_given_is_given_to_another_at_once(pair) -> None:
    first, second = pair
    first.held.acknowledge(first.got[1].reply, ACK)
    await first.connection.wire.flush()
    await first.die()
    await second.succession.succeed([first.name])
    await eventually(lambda: sequences(second) == [1, 3], 1)
    assert {each.delivered for each in second.got} == {2}
    assert second.looked_over == [60_000]


async def test_what_is_held_by_one_that_is_there_is_not_given_away(pair) -> None:
    first, second = pair
    await second.succession.begin()
    await published(second.connection, 4)
    await eventually(lambda: len(first.got) + len(second.got) == 7)
    await second.succession.begin()
    for each in (*first.got, *second.got):
        assert each.delivered == 1
    for each in (first, second):
        assert each.held.names() == [f"{EVENTS_STREAM} {d.sequence}" for d in each.got]


async def test_one_that_left_in_order_or_is_followed_by_a_peer_leaves_nothing_to_do(
    pair, store: Store
) -> None:
    first, second = pair
    assert await store.fetch("leave", first.name)
    await first.die()
    await second.succession.succeed([first.name, "not-a-coordinator"])
    assert second.looked_over == []
    assert second.got == []


async def test_clients_are_told_to_ask_again(pair) -> None:
    first, second = pair
    told: list[str] = []
    await first.connection.wire.subscribe(ASK_AGAIN, lambda subject, *_: told.append(subject))
    await first.connection.wire.flush()
    await second.succession.succeed([])
    await eventually(lambda: told == [ASK_AGAIN])


async def test_given_back_by_two_a_message_may_come_twice_but_an_acked_one_does_not_come(
    pair,
) -> None:
    """nats-server ignores a -NAK only for what is not pending: so commands, which must not be given
    to two, are not given away like this."""
    first, second = pair
    await second.rest()
    first.held.acknowledge(first.got[0].reply, ACK)
    await first.connection.wire.flush()
    await first.die()
    await second.succession.succeed([first.name])
    await second.succession.begin()
    second.pull()
    await eventually(lambda: set(sequences(second)) == {2, 3})
    for each in second.got:
        second.held.acknowledge(each.reply, ACK)
    await eventually(lambda: all_acked(second.connection))
    assert second.held.names() == []
    await second.succession.begin()
    await published(second.connection, 1)
    await eventually(lambda: 4 in sequences(second))
    assert 1 not in sequences(second)


async def all_acked(connection: Connection) -> bool:
    info = await ask(connection.wire, f"CONSUMER.INFO.{EVENTS_STREAM}.{COORDINATOR}")
    return bool(info["num_ack_pending"] == 0)


def test_what_is_not_acked_for_long_is_held_no_more() -> None:
    now, given = [0.0], list[Delivery]()
    held = Held(lambda *_: None, lambda: now[0])
    take = held.taking("S", given.append)
    for number in (1, 2, 3):
        take(Delivery("s", f"reply-{number}", b"", b"", 1, number, 0))
        now[0] += 2.4
    assert held.names() == ["S 1", "S 2", "S 3"]
    take(Delivery("s", "reply-4", b"", b"", 1, 4, 0))
    assert held.names() == ["S 2", "S 3", "S 4"]
    assert [each.sequence for each in given] == [1, 2, 3, 4]
