"""A connection, and a small stand-in for the coordinator: streams, commands, claims, events."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
from harness.eventually import eventually
from harness.rights import AGENTS, as_user, granted, no_violations
from harness.services import RunningNats, nats_in
from headway.agents import payloads
from headway.agents.agent import Agent
from headway.agents.api import ERROR, ERROR_CODE
from headway.agents.catalogue_views import Presence
from headway.agents.command_key import CommandKey
from headway.agents.command_signing import signed
from headway.agents.connection import Connection, connect
from headway.agents.credentials import Credentials
from headway.agents.entries import (
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalRead,
    Operation,
)
from headway.agents.identity import new_task_id
from headway.agents.messages import Command, CommandData, Event, decode_event, encode
from headway.agents.pull import ACK, Delivery, Pull
from headway.agents.subjects import (
    COMMANDS,
    COMMANDS_STREAM,
    COORDINATOR,
    EVENTS,
    EVENTS_STORED,
    EVENTS_STREAM,
    PAYLOADS,
    PAYLOADS_STREAM,
    any_agent_subject,
    command_subject,
    commands_of_agent,
    payloads_to,
)
from headway.agents.testing import MemoryJournal
from headway.agents.views import (
    ClaimReply,
    ClaimRequest,
)
from headway.agents.worker import Worker
from headway.coordinator.permissions import User
from nats.aio.msg import Msg
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StreamConfig,
    SubjectTransform,
)
from pydantic import BaseModel

ACK_WAIT_S = 0.6  # of the tests' consumers; workers are told
KEY = b"k" * 32  # that the stand-in signs with


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with await connect(nats_url, name="test") as connection:
        yield connection


def payloads_stream() -> StreamConfig:
    return StreamConfig(
        name=PAYLOADS_STREAM,
        subjects=[PAYLOADS],
        discard=DiscardPolicy.NEW,
        discard_new_per_subject=True,
        max_msgs_per_subject=1,
        allow_direct=True,
    )


class StandIn:
    """Publishes commands, grants claims, and keeps every event that was stored."""

    def __init__(self, connection: Connection, agents: tuple[str, ...]) -> None:
        self.connection = connection
        self.wire = connection.wire
        self.agents = agents
        self.events: list[Event] = []
        self.event_subjects: list[str] = []
        self.claims: list[ClaimRequest] = []
        self.presences: list[Presence] = []
        self.key = KEY
        self.keys_given = 0
        self.decide: Callable[[ClaimRequest], ClaimReply | None] = lambda claim: ClaimReply(
            granted=True, epoch=claim.epoch + 1
        )
        self._pull = Pull(self.wire, EVENTS_STREAM, COORDINATOR, self._on_event, lambda: 1000)
        self._pulling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.declare()
        await self.wire.subscribe(any_agent_subject("claim"), self._on_claim)
        await self.wire.subscribe(any_agent_subject("key"), self._on_key)
        await self.wire.subscribe("hw.presence.*", self._on_presence)
        self._pulling = asyncio.create_task(self._pull.run())

    async def stop(self) -> None:
        assert self._pulling is not None
        self._pulling.cancel()
        await asyncio.wait({self._pulling})

    async def declare(self) -> None:
        """Make the streams, the consumers and the bucket, as the coordinator would."""
        js = self.connection.nc.jetstream()
        await js.add_stream(
            StreamConfig(
                name=COMMANDS_STREAM,
                subjects=[COMMANDS],
                retention=RetentionPolicy.WORK_QUEUE,
                max_msgs_per_subject=1,
                discard=DiscardPolicy.NEW,
                discard_new_per_subject=True,
            )
        )
        await js.add_stream(
            StreamConfig(
                name=EVENTS_STREAM,
                subjects=[EVENTS],
                retention=RetentionPolicy.WORK_QUEUE,
                subject_transform=SubjectTransform("hw.events.*.*", EVENTS_STORED),
            )
        )
        for agent in self.agents:
            await js.add_consumer(
                COMMANDS_STREAM,
                ConsumerConfig(
                    durable_name=agent,
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=ACK_WAIT_S,
                    filter_subject=commands_of_agent(agent),
                ),
            )
        await js.add_consumer(
            EVENTS_STREAM,
            ConsumerConfig(durable_name=COORDINATOR, ack_policy=AckPolicy.EXPLICIT, ack_wait=5),
        )
        await js.add_stream(payloads_stream())

    async def command(self, agent: str, action: str, **changes: Any) -> Command:
        """Publish a command; `data` by reference if it is large."""
        fields: dict[str, Any] = {
            "task": str(new_task_id()),
            "saga": "order",
            "step": "pay",
            "phase": "action",
            "attempt": 1,
            "epoch": 0,
            "traceparent": "",
            "data": CommandData(),
        }
        fields |= changes
        kind = "execute" if fields["phase"] == "action" else "compensate"
        command = Command(
            id=f"{fields['task']}.{fields['step']}.{fields['attempt']}",
            type=f"headway.command.{kind}",  # type: ignore[arg-type]
            **fields,
        )
        data = orjson.dumps(command.data)
        if len(data) > 262_144:
            command.dataref, command.datadigest = await payloads.put(
                self.wire, payloads_to(agent), command.task, data
            )
            command.data = None
        command.sentms = command.sentms or time.time_ns() // 1_000_000
        subject = command_subject(agent, action, command.task, command.step)
        await self.send(subject, encode(command))
        return command

    async def send(self, subject: str, body: bytes) -> None:
        """Publish as a coordinator does: signed."""
        await self.publish(subject, signed(self.key, subject, body))

    async def publish(self, subject: str, body: bytes) -> None:
        """Publish anything, as it is."""
        assert await self.wire.store_all([(subject, body)]) == [None]

    async def event(self, command: Command, kind: str) -> Event:
        """The first event of `command`'s attempt whose type ends in `kind`, once it is there."""
        await eventually(lambda: self.of(command, kind), what=f"a {kind} event")
        return self.of(command, kind)[0]

    def of(self, command: Command, kind: str = "") -> list[Event]:
        return [
            each
            for each in self.events
            if (each.task, each.step, each.phase, each.attempt)
            == (command.task, command.step, command.phase, command.attempt)
            and each.type.endswith(kind)
        ]

    async def queued(self) -> int:
        """How many commands are in the stream: waiting, or being worked on."""
        info = await self.connection.nc.jetstream().stream_info(COMMANDS_STREAM)
        return info.state.messages

    async def all_acked(self) -> None:
        async def empty() -> bool:
            return await self.queued() == 0

        await eventually(empty, what="an empty command stream")

    def _on_event(self, delivery: Delivery) -> None:
        self.event_subjects.append(delivery.subject)
        self.events.append(decode_event(delivery.body))
        self.wire.publish(delivery.reply, ACK)

    def _on_key(self, _subject: str, reply: str, _headers: bytes, _body: bytes) -> None:
        self.keys_given += 1
        answer = CommandKey(key=base64.b64encode(self.key).decode())
        self.wire.publish(reply, answer.model_dump_json().encode())

    def _on_claim(self, _subject: str, reply: str, _headers: bytes, body: bytes) -> None:
        claim = ClaimRequest.model_validate_json(body)
        self.claims.append(claim)
        answer = self.decide(claim)
        if answer is not None:
            self.wire.publish(reply, answer.model_dump_json().encode())

    def _on_presence(self, _subject: str, _reply: str, _headers: bytes, body: bytes) -> None:
        self.presences.append(Presence.model_validate_json(body))


_JOURNAL_REQUESTS: dict[str, type[Operation]] = {
    "journal.open": JournalOpen,
    "journal.append": JournalAppend,
    "journal.read": JournalRead,
}


class JournalStandIn:
    """Answers for journals on the API, each kept in memory.

    `refuse` may say no (with `code`, `kind` and `reason`); `deaf` is silent; nothing is answered
    while `answering` is not set. `requests` are all that were heard, by operation, oldest first.
    """

    def __init__(self, connection: Connection) -> None:
        self.journals: dict[tuple[UUID, str, str], MemoryJournal] = {}
        self.requests: list[tuple[str, Operation]] = []
        self.refuse: Callable[[str, Any], Any] = lambda operation, request: None
        self.deaf = False
        self.answering = asyncio.Event()
        self.answering.set()
        self._connection = connection

    async def start(self) -> None:
        for operation in _JOURNAL_REQUESTS:
            answer = partial(self._answer, operation)
            await self._connection.nc.subscribe(any_agent_subject(operation), cb=answer)

    def of(self, command: Command) -> MemoryJournal:
        """The journal of a command's operation."""
        key = (UUID(command.task), command.step, str(command.phase))
        return self.journals.setdefault(key, MemoryJournal())

    def heard(self, operation: str) -> list[Any]:
        return [request for name, request in self.requests if name == operation]

    async def _answer(self, operation: str, message: Msg) -> None:
        request = _JOURNAL_REQUESTS[operation].model_validate_json(message.data)
        self.requests.append((operation, request))
        if self.deaf:
            return
        await self.answering.wait()
        refusal = self.refuse(operation, request)
        if refusal is not None:
            problem = {"type": refusal.kind, "detail": refusal.reason}
            headers = {ERROR: refusal.reason, ERROR_CODE: str(refusal.code)}
            await self._connection.nc.publish(message.reply, orjson.dumps(problem), headers=headers)
            return
        key = (request.task, request.step, request.phase)
        journal = self.journals.setdefault(key, MemoryJournal())
        match operation:
            case "journal.open":
                answer: BaseModel = await journal.open()
            case "journal.read":
                answer = await journal.read(request.after)
            case _:
                if len(journal.entries) >= request.seq:  # asked again
                    answer = JournalAppended(seq=len(journal.entries))
                else:
                    answer = await journal.append(request.epoch, request.seq, request.entries)
        await message.respond(answer.model_dump_json().encode())


@pytest.fixture
async def payload_store(connection: Connection) -> None:
    """The stream that payloads travel by."""
    await connection.nc.jetstream().add_stream(payloads_stream())


@pytest.fixture
async def standin(nats_url: str) -> AsyncIterator[StandIn]:
    async with await connect(nats_url, name="stand-in") as connection:
        standin = StandIn(connection, ("payments",))
        await standin.start()
        yield standin
        await standin.stop()


@pytest.fixture
async def journals(nats_url: str) -> AsyncIterator[JournalStandIn]:
    async with await connect(nats_url, name="journals") as connection:
        journals = JournalStandIn(connection)
        await journals.start()
        yield journals


class Running:
    """A worker at work on a connection of its own."""

    def __init__(self, connection: Connection, worker: Worker) -> None:
        self.connection = connection
        self.worker = worker
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(worker.run(self.stop))

    async def end(self) -> None:
        self.stop.set()
        await self.task
        await self.connection.close()


@pytest.fixture
def payments() -> tuple[Credentials, User]:
    """The key of agent `payments`, and who that is on the server."""
    return granted("payments")


@pytest.fixture
async def nats_server(
    tmp_path: Path, payments: tuple[Credentials, User]
) -> AsyncIterator[RunningNats]:
    """One that lets in agent `payments`, with its own key and no more than its rights."""
    nats = nats_in(tmp_path / "nats", [payments[1]])
    await nats.start()
    yield nats
    await nats.kill()
    shutil.rmtree(tmp_path / "nats")


@pytest.fixture
async def work(
    nats_url: str, payments: tuple[Credentials, User]
) -> AsyncIterator[Callable[..., Any]]:
    """Starts a worker with the rights of its agent, which must suffice."""
    running: list[Running] = []
    numbers = itertools.count(1)

    async def start(agent: Agent, **options: Any) -> Running:
        own = payments[0] if agent.name == "payments" else None
        url = as_user(nats_url, AGENTS)
        connection = await connect(url, name=f"worker {next(numbers)}", credentials=own)
        options = {"ack_wait_s": ACK_WAIT_S, "grace_s": 0.5} | options
        running.append(Running(connection, Worker(connection, agent, **options)))
        return running[-1]

    with no_violations():
        yield start
        for each in running:
            await each.end()
