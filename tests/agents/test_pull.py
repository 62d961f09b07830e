"""The pull loop against a real server: refill, errors, restarts, lost consumers and stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from harness.eventually import eventually
from harness.services import RunningNats
from headway.agents.connection import Connection, connect
from headway.agents.pull import ACK, NAK, Delivery, Pull, delivery, term
from nats.js.api import ConsumerConfig


async def declare(connection: Connection) -> None:
    js = connection.nc.jetstream()
    await js.add_stream(name="S", subjects=["s.*"], retention="workqueue")
    await js.add_consumer("S", ConsumerConfig(durable_name="C", ack_policy="explicit", ack_wait=5))


class Owner:
    """Takes deliveries, at most `slots` at a time."""

    def __init__(self, connection: Connection, slots: int = 10) -> None:
        self.wire = connection.wire
        self.slots = slots
        self.held: list[Delivery] = []
        self.bodies: list[bytes] = []
        self.most_held = 0
        self.pull = Pull(self.wire, "S", "C", self.take, lambda: self.slots - len(self.held))

    def take(self, message: Delivery) -> None:
        self.held.append(message)
        self.bodies.append(message.body)
        self.most_held = max(self.most_held, len(self.held))

    def ack_one(self) -> None:
        self.wire.publish(self.held.pop(0).reply, ACK)
        self.pull.freed()

    async def ack_until(self, count: int) -> None:
        """Take and ack until `count` different messages have come."""
        while len(set(self.bodies)) < count or self.held:
            if self.held:
                self.ack_one()
            else:
                await eventually(lambda: self.held)


@pytest.fixture
async def running() -> AsyncIterator[Callable[[Pull], asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []

    def start(pull: Pull) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(pull.run()))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


Start = Callable[[Pull], "asyncio.Task[None]"]


async def publish(connection: Connection, start: int, stop: int) -> None:
    outcomes = await connection.wire.store_all([("s.a", b"%d" % n) for n in range(start, stop)])
    assert set(outcomes) <= {None}


def numbers(start: int, stop: int) -> list[bytes]:
    return [b"%d" % n for n in range(start, stop)]


async def test_everything_comes_once_and_never_more_than_there_is_room_for(
    connection: Connection, running: Start
) -> None:
    await declare(connection)
    owner = Owner(connection)
    running(owner.pull)
    await publish(connection, 0, 500)
    await owner.ack_until(500)
    assert owner.bodies == numbers(0, 500)
    assert owner.most_held <= 10


async def test_a_full_owner_is_given_nothing_until_it_has_room(
    connection: Connection, running: Start
) -> None:
    await declare(connection)
    owner = Owner(connection, slots=3)
    running(owner.pull)
    await publish(connection, 0, 10)
    await eventually(lambda: len(owner.held) == 3)
    await connection.wire.flush()
    assert len(owner.bodies) == 3
    owner.ack_one()
    await eventually(lambda: len(owner.bodies) == 4)


async def test_paused_it_asks_for_no_more_until_resumed(
    connection: Connection, running: Start
) -> None:
    await declare(connection)
    owner = Owner(connection, slots=2)
    running(owner.pull)
    await publish(connection, 0, 6)
    await eventually(lambda: len(owner.held) == 2)
    owner.pull.pause()
    owner.ack_one()
    owner.ack_one()
    await connection.wire.flush()
    assert len(owner.bodies) == 2
    owner.pull.resume()
    await owner.ack_until(6)


async def test_a_delivery_says_how_often_and_since_when(
    connection: Connection, running: Start
) -> None:
    await declare(connection)
    owner = Owner(connection, slots=1)
    running(owner.pull)
    await publish(connection, 0, 1)
    await eventually(lambda: owner.held)
    first = owner.held.pop()
    assert (first.subject, first.body, first.headers) == ("s.a", b"0", b"")
    assert (first.delivered, first.sequence) == (1, 1)
    stored = await connection.nc.jetstream().get_msg("S", 1)
    assert stored.time is not None
    assert abs(first.stored_at_ms - stored.time.timestamp() * 1000) < 2
    connection.wire.publish(first.reply, NAK)
    owner.pull.freed()
    await eventually(lambda: owner.held)
    assert owner.held[0].delivered == 2


async def test_term_takes_a_message_out_with_its_reason(
    connection: Connection, running: Start
) -> None:
    await declare(connection)
    advisories: list[bytes] = []
    await connection.wire.subscribe(
        "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.S.C",
        lambda _subject, _reply, _headers, body: advisories.append(body),
    )
    owner = Owner(connection)
    running(owner.pull)
    await publish(connection, 0, 1)
    await eventually(lambda: owner.held)
    connection.wire.publish(owner.held[0].reply, term("not a\r\ncommand"))
    await eventually(lambda: advisories)
    assert b'"reason":"not a command"' in advisories[0]


def test_both_forms_of_the_ack_subject_are_read() -> None:
    first = delivery("s", "$JS.ACK.S.C.2.17.3.1700000000123456789.5", b"", b"")
    second = delivery("s", "$JS.ACK._.HASH.S.C.2.17.3.1700000000123456789.5.tok", b"", b"")
    assert first.delivered == second.delivered == 2
    assert first.sequence == second.sequence == 17
    assert first.stored_at_ms == second.stored_at_ms == 1_700_000_000_123


async def test_a_consumer_that_comes_later_is_found(connection: Connection, running: Start) -> None:
    owner = Owner(connection)
    running(owner.pull)
    await connection.wire.flush()
    await declare(connection)
    await publish(connection, 0, 3)
    await owner.ack_until(3)


async def test_a_deleted_consumer_made_again_is_pulled_from_again(
    connection: Connection, running: Start
) -> None:
    await declare(connection)
    owner = Owner(connection)
    running(owner.pull)
    await publish(connection, 0, 3)
    await owner.ack_until(3)
    await connection.nc.jetstream().delete_consumer("S", "C")
    await connection.nc.jetstream().add_consumer(
        "S", ConsumerConfig(durable_name="C", ack_policy="explicit")
    )
    await publish(connection, 3, 6)
    await owner.ack_until(6)


async def test_expired_requests_are_made_again(
    connection: Connection, running: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.pull.EXPIRES_S", 0.8)
    monkeypatch.setattr("headway.agents.pull.IDLE_HEARTBEAT_S", 0.4)
    await declare(connection)
    owner = Owner(connection)
    running(owner.pull)
    await asyncio.sleep(1)  # the very thing under test: requests lapse meanwhile
    await publish(connection, 0, 100)
    await owner.ack_until(100)
    assert owner.most_held <= 10


async def test_silence_is_noticed_and_answered_by_asking_again(
    connection: Connection, running: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.pull.IDLE_HEARTBEAT_S", 0.05)
    requests: list[str] = []
    await connection.wire.subscribe(
        "$JS.API.CONSUMER.MSG.NEXT.NONE.C",
        lambda _subject, reply, _headers, _body: requests.append(reply),
    )
    pull = Pull(connection.wire, "NONE", "C", lambda _delivery: None, lambda: 1)
    running(pull)
    await eventually(lambda: len(requests) >= 3)


@pytest.mark.parametrize("wiped", [False, True])
async def test_a_restart_of_the_server_is_survived(
    nats_server: RunningNats, running: Start, wiped: bool
) -> None:
    async with await connect(nats_server.url, name="test") as connection:
        await declare(connection)
        owner = Owner(connection)
        task = running(owner.pull)
        await publish(connection, 0, 20)
        await owner.ack_until(20)
        await nats_server.kill()
        if wiped:
            await nats_server.wipe_store()
        await nats_server.start()
        await eventually(lambda: connection.nc.is_connected)
        if wiped:
            await declare(connection)
        await publish(connection, 20, 40)
        await owner.ack_until(40)
        assert set(owner.bodies) == set(numbers(0, 40))  # a lost ack is a redelivery
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_ending_delivers_what_was_on_its_way(connection: Connection, running: Start) -> None:
    await declare(connection)
    owner = Owner(connection, slots=100)
    task = running(owner.pull)
    await connection.wire.flush()
    await publish(connection, 0, 50)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    given = len(owner.held)
    for message in owner.held:
        connection.wire.publish(message.reply, NAK)
    heir = Owner(connection, slots=100)
    running(heir.pull)
    await eventually(lambda: len(heir.held) == 50, within_s=3)
    assert given == sum(message.delivered == 2 for message in heir.held)
