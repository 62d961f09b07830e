"""Streams and commands against a real nats-server."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest
from harness.eventually import eventually
from harness.services import RunningNats
from headway.agents import Connection, connect
from headway.agents.identity import new_task_id
from headway.agents.messages import EXECUTE
from headway.agents.pull import ACK, Delivery, Pull
from headway.agents.subjects import (
    COMMANDS_STREAM,
    COORDINATOR,
    EVENTS_STREAM,
    command_subject,
    event_subject,
)
from headway.coordinator import streams
from headway.coordinator.bus import HINTS_MAX, LATE_S, Bus
from headway.coordinator.clock import now_ms
from headway.coordinator.commands import Outgoing, Sought
from headway.coordinator.decisions import Decision
from headway.coordinator.jetstream import ask
from headway.coordinator.topology import Topology
from headway.sagas import Phase, Saga
from headway.sagas.task import unborn


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with await connect(nats_url, name="test") as connection:
        yield connection


@pytest.fixture
async def topology(connection: Connection) -> Topology:
    topology = Topology(connection, 1)
    await topology.declare(["ag"])
    return topology


def command(step: str, *, fresh: bool = True) -> Outgoing:
    task = new_task_id()
    subject = command_subject("ag", "do", str(task), step)
    attributes = {"id": "x", "task": str(task), "saga": "s", "step": step, "phase": "action"}
    attributes |= {"attempt": 1, "epoch": 0, "traceparent": "", "type": EXECUTE}
    return Outgoing(task, "ag", subject, fresh, attributes, b'{"input":1}')


def sought(subject: str, attempt: int = 1) -> Sought:
    return Sought(subject, Phase.ACTION, attempt)


async def test_declaring_twice_changes_nothing(topology: Topology) -> None:
    created = await topology.identities()
    assert await topology.declare(["ag"]) == created
    assert all(created.values())


async def test_a_stream_or_a_consumer_that_is_gone_shows(
    topology: Topology, connection: Connection
) -> None:
    await ask(connection.wire, f"CONSUMER.DELETE.{COMMANDS_STREAM}.ag")
    assert (await topology.identities())[COMMANDS_STREAM] == ""
    await ask(connection.wire, "STREAM.DELETE.HW_FEED")
    assert (await topology.identities())["HW_FEED"] == ""
    again = await topology.declare(["ag"])
    assert all(again.values())


async def test_a_fresh_command_that_is_there_already_counts_and_an_older_one_is_replaced(
    topology: Topology, connection: Connection
) -> None:
    bus = Bus(connection, unsigned, now_ms)
    first = command("s")
    assert await bus.dispatch([first, first]) == [True, True]
    newer = replace(first, fresh=False, data=b'{"input":2}')
    assert await bus.dispatch([newer]) == [True]
    message = await connection.nc.jetstream().get_last_msg(COMMANDS_STREAM, first.subject)
    assert message.data is not None
    assert b'"input":2' in message.data


async def test_commands_in_the_stream_are_outstanding_until_withdrawn(
    topology: Topology, connection: Connection
) -> None:
    bus = Bus(connection, unsigned, now_ms)
    commands = [command("s") for _ in range(40)]
    await bus.dispatch(commands)
    taken = [each.subject for each in commands]
    wanted = [sought(subject) for subject in taken]
    assert await topology.outstanding(wanted) == set(wanted)
    assert await topology.outstanding(wanted[:3]) == set(wanted[:3])
    assert await bus.withdraw(wanted[1:]) == set(wanted[1:])
    assert await bus.withdraw(wanted[1:2]) == set()
    assert await topology.outstanding(wanted) == {wanted[0]}


@pytest.mark.parametrize("others", [0, 20])
async def test_an_older_attempts_or_publications_command_is_not_the_one_that_is_sought(
    topology: Topology, connection: Connection, others: int
) -> None:
    """A server that was killed before it wrote down an answer has the answered command again."""
    older = command("s")
    commands = [older, *(command("s") for _ in range(others))]
    await Bus(connection, unsigned, now_ms).dispatch(commands)
    wanted = [sought(each.subject) for each in commands[1:]]
    newer = [
        sought(older.subject, 2),
        Sought(older.subject, Phase.COMPENSATION, 1),
        Sought(older.subject, Phase.ACTION, 1, epoch=1),
    ]
    assert await topology.outstanding([*newer, *wanted]) == set(wanted)
    assert await topology.outstanding([sought(older.subject)]) == {sought(older.subject)}


async def test_a_later_attempts_command_outlives_what_is_done_about_an_earlier_one(
    topology: Topology, connection: Connection
) -> None:
    """What follows from a time-out may be carried out when the next attempt is in the stream."""
    bus = Bus(connection, unsigned, now_ms)
    late = command("s")
    later = replace(late, fresh=False, attributes={**late.attributes, "attempt": 2})
    assert await bus.dispatch([late, later]) == [True, True]
    assert await bus.withdraw([sought(late.subject)]) == set()
    assert await bus.dispatch([replace(late, fresh=False)]) == [False]
    assert await topology.outstanding([sought(late.subject, 2)]) == {sought(late.subject, 2)}
    assert await bus.withdraw([sought(late.subject, 2)]) == {sought(late.subject, 2)}


async def test_what_is_no_command_is_not_one_that_is_sought(
    topology: Topology, connection: Connection
) -> None:
    junk = command("s")
    await connection.nc.jetstream().publish(junk.subject, b"{}")
    assert await topology.outstanding([sought(junk.subject)]) == set()


def unsigned(_agent: str, _subject: str, body: bytes) -> bytes:
    return body


@dataclass
class Six:
    """Six commands, each delivered once and none answered."""

    subjects: list[str]
    got: list[Delivery]
    connection: Connection

    async def ack(self, *places: int) -> None:
        for place in places:
            self.connection.wire.publish(self.got[place].reply, ACK)
        await self.connection.wire.flush()

    @property
    def redelivered(self) -> set[str]:
        return {each.subject for each in self.got[6:]}


@pytest.fixture
async def six(
    topology: Topology, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Six]:
    monkeypatch.setattr(streams, "ACK_WAIT_S", 0.5)
    await ask(connection.wire, f"CONSUMER.DELETE.{COMMANDS_STREAM}.ag")
    await topology.declare(["ag"])
    commands, got = [command("s") for _ in range(6)], list[Delivery]()
    for each in commands:
        await Bus(connection, unsigned, now_ms).dispatch([each])
    pull = Pull(connection.wire, COMMANDS_STREAM, "ag", got.append, lambda: 64)
    pulling = asyncio.create_task(pull.run())
    await eventually(lambda: len(got) == 6)
    yield Six([each.subject for each in commands], got, connection)
    pulling.cancel()


async def test_removing_a_command_that_is_worked_on_strands_no_other(six: Six) -> None:
    await six.ack(1, 2)
    assert (
        await Bus(six.connection, unsigned, now_ms).withdraw([sought(six.subjects[3])]) == set()
    )  # an agent had it
    await six.ack(4)
    await eventually(lambda: six.redelivered == {six.subjects[0], six.subjects[5]})


async def test_a_command_that_its_consumer_is_through_with_is_not_outstanding(
    six: Six, topology: Topology
) -> None:
    """nats-server 2.15.1 strands the first one here; if another one does not, all is well too."""
    await six.ack(1, 2)
    purge = {"filter": six.subjects[3]}
    await ask(six.connection.wire, f"STREAM.PURGE.{COMMANDS_STREAM}", purge)
    await six.ack(4)
    await eventually(lambda: six.subjects[5] in six.redelivered)
    found = await topology.outstanding([sought(subject) for subject in six.subjects])
    outstanding = {each.subject for each in found}
    assert (six.subjects[0] in outstanding) == (six.subjects[0] in six.redelivered)
    assert six.subjects[5] in outstanding


async def test_what_was_delivered_and_not_answered_is_found_up_to_a_sequence(
    six: Six, topology: Topology, connection: Connection
) -> None:
    """Walked by several at once, over the gaps that answered and foreign messages leave."""
    await topology.ensure_agent("other")
    foreign = command_subject("other", "do", str(new_task_id()), "s")
    for each in range(5):
        await connection.nc.jetstream().publish(f"{foreign}{each}", b"{}")
    queued = command("s")
    await Bus(connection, unsigned, now_ms).dispatch([queued])
    await eventually(lambda: len({each.subject for each in six.got}) == 7)
    await six.ack(0, 2, 3)
    await eventually(lambda: floor_is(connection, 1))
    upto = await topology.delivered("ag")
    assert upto == 12
    found = await topology.unanswered("ag", upto - 1)
    assert [subject for subject, _ in found] == [six.subjects[place] for place in (1, 4, 5)]
    assert all(b'"id":"x"' in body for _, body in found)
    assert [s for s, _ in await topology.unanswered("ag", upto)][-1] == queued.subject
    assert await topology.unanswered("ag", 1) == []


async def floor_is(connection: Connection, sequence: int) -> bool:
    info = await ask(connection.wire, f"CONSUMER.INFO.{COMMANDS_STREAM}.ag")
    return bool(info["ack_floor"]["stream_seq"] == sequence)


async def test_a_command_that_was_held_up_on_its_way_is_marked(
    topology: Topology, connection: Connection
) -> None:
    """By a freeze, or by an outage: a peer may have published it again, and it was done."""
    bus, stream = Bus(connection, unsigned, now_ms), connection.nc.jetstream()

    async def is_late(since: float) -> bool:
        sent = replace(command("s"), since=since)
        await bus.dispatch([sent])
        message = await stream.get_last_msg(COMMANDS_STREAM, sent.subject)
        return b'"late":true' in (message.data or b"")

    assert not await is_late(time.monotonic())
    assert await is_late(time.monotonic() - LATE_S)
    before = time.monotonic()
    await connection.wire.reconnected()
    assert await is_late(before)
    assert not await is_late(time.monotonic())


async def test_hints_are_told_so_often_in_a_second_and_ends_always(connection: Connection) -> None:
    saga = Saga("s").step("a", "ag.do", read_only=True).define()
    decision = Decision(new_task_id(), None, unborn(saga), saga, None, None, (), ())
    clock = [0]
    bus = Bus(connection, unsigned, lambda: clock[0])
    heard: Counter[str] = Counter()
    await connection.wire.subscribe(
        "hw.feed.s.>", lambda subject, *_: heard.update([subject.rpartition(".")[2]])
    )
    for clock[0] in (1_000, 1_999, 2_000):
        for kind in ("submitted", "progressed", "succeeded"):
            for _ in range(HINTS_MAX // 2 + 1):
                bus.announce(decision, kind)
    await connection.wire.flush()
    hints = heard["submitted"] + heard["progressed"]
    assert (hints, heard["succeeded"]) == (2 * HINTS_MAX, 3 * (HINTS_MAX // 2 + 1))


async def event_of(connection: Connection, task: UUID) -> None:
    await connection.nc.jetstream().publish(event_subject("ag", str(task)), b"{}")


@pytest.mark.parametrize("others", [0, 20])
async def test_an_event_is_unread_until_it_is_acked(
    topology: Topology, connection: Connection, others: int
) -> None:
    tasks = [new_task_id() for _ in range(1 + others)]
    await event_of(connection, tasks[0])
    assert await topology.unread(tasks) == {tasks[0]}
    await acked(connection, 1)
    assert await topology.unread(tasks) == set()


@pytest.mark.parametrize("others", [0, 20])
async def test_an_event_that_comes_to_nobody_any_more_is_not_unread(
    nats_server: RunningNats, others: int
) -> None:
    """The stream has it, and its consumer was through with it: as after a disk that was full."""
    tasks = [new_task_id() for _ in range(1 + others)]
    async with await connect(nats_server.url, name="test") as connection:
        await Topology(connection, 1).declare([])
        await event_of(connection, tasks[0])
    await nats_server.stop()
    [kept] = nats_server.server.store.glob("**/HW_EVENTS/msgs")
    older = kept.with_name("older")
    copy_with_owners(kept, older)
    await nats_server.start()
    async with await connect(nats_server.url, name="test") as connection:
        await acked(connection, 1)
    await nats_server.stop()
    shutil.rmtree(kept)
    older.rename(kept)
    await nats_server.start()
    async with await connect(nats_server.url, name="test") as connection:
        assert (await connection.nc.jetstream().stream_info(EVENTS_STREAM)).state.messages == 1
        assert await Topology(connection, 1).unread(tasks) == set()


def copy_with_owners(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--archive", source, target], check=True)


async def acked(connection: Connection, count: int) -> None:
    """Take so many events out of the stream, as coordinators do."""
    got = list[Delivery]()
    pull = Pull(connection.wire, EVENTS_STREAM, COORDINATOR, got.append, lambda: 64)
    pulling = asyncio.create_task(pull.run())
    await eventually(lambda: len(got) == count)
    for each in got:
        connection.wire.publish(each.reply, ACK)
    jetstream = connection.nc.jetstream()

    async def empty() -> bool:
        return (await jetstream.stream_info(EVENTS_STREAM)).state.messages == 0

    await eventually(empty)
    pulling.cancel()
    await asyncio.wait({pulling})
