"""Stands in for the coordinators: gives an agent its key, sends it commands and grants its claims.

It uses what coordinators use (streams, permissions, signatures, models), but decides nothing by
itself: a check says what is answered. Always holds: whatever the agent publishes is in `log`.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections import deque
from collections.abc import Mapping
from functools import partial

import orjson
from headway.agents import subjects
from headway.agents.api import ERROR, ERROR_CODE
from headway.agents.command_key import CommandKey
from headway.agents.command_signing import KEY_BYTES, signed
from headway.agents.connection import Connection
from headway.agents.errors import InvalidInput
from headway.agents.messages import decode_event, describe
from headway.agents.pull import delivery
from headway.agents.views import ClaimReply, ClaimRequest, Problem
from headway.conform.seen import ENDINGS, Broken, Kind, Log, Seen
from headway.coordinator.rollcall import Holdings, RollCall
from headway.coordinator.topology import Topology
from pydantic import ValidationError

STORE_TIMEOUT_S = 5.0
ASKER = "conform"


class StandIn:
    """For one agent, over a connection that may do everything.

    `claims` holds, by task, what is answered to its next claims: None is no answer at all. When
    there is nothing left for a task, claims are granted until the attempt has ended.
    """

    def __init__(self, connection: Connection, agent: str) -> None:
        self.agent = agent
        self.wire = connection.wire
        self.log = Log()
        self.claims: dict[str, deque[ClaimReply | None]] = {}
        self._key = secrets.token_bytes(KEY_BYTES)
        self._topology = Topology(connection, replicas=1)
        self._roll_call = RollCall(connection.wire, ASKER)
        self._loop = asyncio.get_running_loop()

    async def begin(self) -> None:
        """Make streams and consumer, and listen to all that the agent says."""
        await self._topology.declare([self.agent])
        await self._roll_call.begin()
        heard: dict[str, Kind] = {
            subjects.event_subject(self.agent, "*"): "event",
            subjects.presence_subject(self.agent): "presence",
            subjects.dead_subject(subjects.COMMANDS_STREAM, self.agent): "letter",
        }
        for subject, kind in heard.items():
            await self.wire.subscribe(subject, partial(self._hear, kind))
        await self.wire.subscribe(
            f"$JS.ACK.{subjects.COMMANDS_STREAM}.{self.agent}.>", self._hear_answer
        )
        await self.wire.subscribe(
            f"$JS.ACK.*.*.{subjects.COMMANDS_STREAM}.{self.agent}.>", self._hear_answer
        )
        await self.wire.subscribe(f"{subjects.inbox_of_agent(self.agent)}.>", self._hear_delivery)
        await self.wire.subscribe(subjects.agent_subject(self.agent, "key"), self._give_key)
        await self.wire.subscribe(subjects.agent_subject(self.agent, "claim"), self._answer_claim)
        await self.wire.flush()

    def sign(self, subject: str, body: bytes) -> bytes:
        """As coordinators sign what they publish there."""
        return signed(self._key, subject, body)

    async def store(self, subject: str, body: bytes) -> int:
        """Put a message into a stream; its sequence. Broken if the stream does not take it."""
        message = await self.wire.ask(subject, body, STORE_TIMEOUT_S)
        stored = orjson.loads(message.data)
        if "error" in stored:
            raise Broken(f"{subject} is not stored: {stored['error']['description']}")
        return int(stored["seq"])

    def say(self, subject: str, body: bytes = b"", *, headers: bytes = b"") -> None:
        """Publish, as core NATS does: whoever listens gets it."""
        self.wire.publish(subject, body, headers=headers)

    async def holdings(self) -> Holdings | None:
        """What the agent's instances hold, if it can be had who they are."""
        return await self._roll_call.holdings(subjects.roll_subject(self.agent))

    async def members(self) -> list[str]:
        """The names of the agent's instances, as nats-server tells who listens."""
        look = await self._roll_call.look(subjects.roll_subject(self.agent))
        return [] if look is None else list(look.members)

    def _hear(self, kind: Kind, subject: str, reply: str, _headers: bytes, body: bytes) -> None:
        self.log.add(Seen(kind, self._loop.time(), subject, body, reply))

    def _hear_answer(self, subject: str, _reply: str, headers: bytes, body: bytes) -> None:
        told = delivery("", subject, headers, body)
        now = self._loop.time()
        self.log.add(Seen("answer", now, subject, body, "", told.sequence, told.delivered))

    def _hear_delivery(self, subject: str, reply: str, headers: bytes, body: bytes) -> None:
        if reply.startswith("$JS.ACK."):
            told = delivery(subject, reply, headers, body)
            now = self._loop.time()
            self.log.add(Seen("delivery", now, subject, body, reply, told.sequence, told.delivered))

    def _give_key(self, subject: str, reply: str, _headers: bytes, body: bytes) -> None:
        self.log.add(Seen("key", self._loop.time(), subject, body, reply))
        key = CommandKey(key=base64.b64encode(self._key).decode())
        self._respond(reply, key.model_dump_json().encode())

    def _answer_claim(self, subject: str, reply: str, _headers: bytes, body: bytes) -> None:
        self.log.add(Seen("claim", self._loop.time(), subject, body, reply))
        try:
            asked = ClaimRequest.model_validate_json(body)
        except ValidationError as error:
            self._refuse(reply, 422, describe(error))
            return
        waiting = self.claims.get(str(asked.task))
        answer = waiting.popleft() if waiting else self._by_itself(asked)
        if answer is not None:
            self._respond(reply, answer.model_dump_json().encode())

    def _by_itself(self, asked: ClaimRequest) -> ClaimReply:
        """As coordinators answer: a command that a killed nats-server gives out again is wanted by
        nobody if the end of its attempt was seen."""
        subject = subjects.event_subject(self.agent, str(asked.task))
        of = asked.step, asked.phase, asked.attempt
        told = (each.body for each in self.log.of("event") if each.subject == subject)
        if any(_ended(body) == of for body in told):
            return ClaimReply(granted=False, reason="the attempt has ended")
        return granted(asked)

    def _refuse(self, reply: str, code: int, reason: str) -> None:
        problem = Problem(title="not valid", detail=reason, status=code)
        headers = {ERROR: reason, ERROR_CODE: str(code)}
        self._respond(reply, problem.model_dump_json().encode(), headers)

    def _respond(self, reply: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
        block = "\r\n".join(["NATS/1.0", *lines, "", ""]).encode() if lines else b""
        if reply:
            self.wire.publish(reply, body, headers=block)


def _ended(body: bytes) -> tuple[str, str, int] | None:
    """Of what step, phase and attempt an event tells the end; None if of none."""
    try:
        event = decode_event(body)
    except InvalidInput:
        return None
    if event.type not in ENDINGS:
        return None
    return event.step, event.phase, event.attempt


def granted(asked: ClaimRequest) -> ClaimReply:
    """Leave to begin; under a higher epoch, unless only a turn was asked for."""
    return ClaimReply(granted=True, epoch=asked.epoch if asked.first else asked.epoch + 1)
