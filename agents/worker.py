"""The worker: pulls an agent's commands, starts their attempts, and stops without losing one.

Only commands that a coordinator signed are looked at. A first delivery runs at once, in one task;
a command that may have been run before is claimed first. Whatever else comes on the command
subject is taken out with a reason and never stops the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from headway.agents.agent import Agent
from headway.agents.alive import Alive
from headway.agents.attempt import Attempt
from headway.agents.catalogue_views import Presence
from headway.agents.codec import Keyring
from headway.agents.command_key import AgentKey
from headway.agents.connection import Connection
from headway.agents.deadletters import Refused, letter
from headway.agents.errors import InvalidInput
from headway.agents.handling import Station
from headway.agents.instances import Instances
from headway.agents.messages import Command, decode_command
from headway.agents.pace import Pace
from headway.agents.presence import PresenceTeller
from headway.agents.pull import ACK_WAIT_S, NAK, Delivery, Pull, term
from headway.agents.repeats import Repeats
from headway.agents.strays import is_stray
from headway.agents.subjects import (
    COMMANDS_STREAM,
    CommandSubject,
    SubjectError,
    dead_subject,
    parse_command_subject,
    roll_subject,
    stops_of_agent,
)
from headway.agents.wire import StoreError

CONCURRENCY = 64
GRACE_S = 10.0
CLEAN_UP_S = 1.0  # for handlers to notice that they were cancelled

_log = logging.getLogger("headway.agents.worker")


class Worker:
    """One instance of `agent`: at most `concurrency` handlers at a time.

    `ack_wait_s` is that of the agent's consumer; a sign of life is sent three times as often.
    `keyring`: what decrypts the payloads of encrypted tasks, and encrypts what comes of them.
    """

    def __init__(
        self,
        connection: Connection,
        agent: Agent,
        *,
        concurrency: int = CONCURRENCY,
        grace_s: float = GRACE_S,
        ack_wait_s: float = ACK_WAIT_S,
        keyring: Keyring | None = None,
    ) -> None:
        self.name = f"{_word(socket.gethostname())}-{os.getpid()}-{secrets.token_hex(3)}"
        self._connection = connection
        self._wire = connection.wire
        self._agent = agent
        self._keyring = keyring
        self._slots = concurrency
        self._grace_s = grace_s
        self._keep_every_s = ack_wait_s / 3
        self._attempts: dict[Attempt, None] = {}  # in the order in which they began
        self._current: dict[str, Attempt] = {}  # by subject: the latest of each command
        self._through = asyncio.Event()  # set whenever an attempt is over
        self._pace = Pace(self._wire, agent.name)
        self._stopping = False
        self._doubtful: dict[str, str] = {}  # by reply: what waits for the key
        self._pull = Pull(self._wire, COMMANDS_STREAM, agent.name, self._on_delivery, self._free)
        self._itself = Instances(agent, datetime.fromtimestamp(time.time(), UTC), time.monotonic)
        self._presence = PresenceTeller(self._wire, self._look, self._itself.look)
        held = partial(_subjects, self._attempts, self._doubtful)
        self._alive = Alive(self._wire, roll_subject(agent.name), self.name, held)
        self._key = AgentKey(connection, agent.name)
        self._repeats = Repeats()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then finish within `grace_s` and hand back the rest."""
        self._station = Station(
            self._connection,
            self._agent,
            self.name,
            f"/headway/agents/{self._agent.name}/{self.name}",
            asyncio.get_running_loop(),
            self._keyring,
        )
        await self._alive.begin()
        hints = await self._wire.subscribe(stops_of_agent(self._agent.name), self._on_stop_hint)
        await self._pace.begin()
        forget = self._wire.on_reconnect(self._keep_all)
        _log.info("agent %s works as %s", self._agent.name, self.name)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                pulling = group.create_task(self._pull_commands())
                background = [
                    group.create_task(self._keep_for_ever()),
                    group.create_task(self._presence.run()),
                ]
                await stop.wait()
                await self._wind_down(pulling)
                for task in background:
                    task.cancel()
        finally:
            self._stopping = True
            forget()
            await self._hand_back_the_rest()
            await self._wire.unsubscribe(hints)
            await self._pace.end()
            await self._alive.end()
            _log.info("agent %s (%s) stopped", self._agent.name, self.name)

    async def _pull_commands(self) -> None:
        """Pull once the key that commands are checked with is known."""
        await self._key.learn()
        if self._key.paced:
            self._pace.hear()
        await self._pull.run()

    async def _wind_down(self, pulling: asyncio.Task[None]) -> None:
        """Take nothing new, and give the handlers that run their time."""
        self._stopping = True
        self._presence.say()
        pulling.cancel()
        await asyncio.wait({pulling})
        deadline = time.monotonic() + self._grace_s
        while self._attempts and (left_s := deadline - time.monotonic()) > 0:
            self._through.clear()
            try:
                await asyncio.wait_for(self._through.wait(), left_s)
            except TimeoutError:
                break

    async def _hand_back_the_rest(self) -> None:
        rest = list(self._attempts)
        if not rest:
            return
        _log.warning("agent %s: %d commands handed back", self._agent.name, len(rest))
        await asyncio.gather(*(attempt.hand_back() for attempt in rest))
        await asyncio.wait({attempt.work for attempt in rest}, timeout=CLEAN_UP_S)

    def _free(self) -> int:
        return self._slots - len(self._attempts) - len(self._doubtful)

    def _on_delivery(self, delivery: Delivery) -> None:
        current = self._current.get(delivery.subject)
        if current is not None and current.settlement.is_of(delivery):
            current.settlement.adopt(delivery)
            return
        if self._stopping or self._free() <= 0:
            self._wire.publish(delivery.reply, NAK)
            return
        complaint = self._key.complaint(delivery)
        if not complaint:
            self._begin(delivery)
        elif self._key.may_have_changed(delivery):
            self._doubtful[delivery.reply] = delivery.subject
            self._group.create_task(self._doubt(delivery))
        else:
            self._refuse(delivery, complaint)

    async def _doubt(self, delivery: Delivery) -> None:
        """A signature does not fit: begin if it is the key that is old."""
        answered = await self._key.learn_again()
        del self._doubtful[delivery.reply]
        complaint = self._key.complaint(delivery)
        if not answered or self._stopping or self._free() <= 0:
            self._wire.publish(delivery.reply, NAK)
        elif complaint:
            self._refuse(delivery, complaint)
        else:
            self._begin(delivery)
        self._pull.freed()

    def _begin(self, delivery: Delivery) -> None:
        """Begin what a coordinator signed."""
        try:
            subject, command, task = _read(delivery, self._agent.name)
        except (SubjectError, InvalidInput) as error:
            self._refuse(delivery, str(error))
            return
        attempt = Attempt(self._station, delivery, subject, command, task, self._on_through)
        self._attempts[attempt] = None
        self._current[delivery.subject] = attempt
        claimed = not self._repeats.may_be(delivery, command)
        attempt.start(claimed=claimed, paced=command.paced or self._pace.limited)

    def _refuse(self, delivery: Delivery, reason: str) -> None:
        """Take a message out for good. It is kept as a dead letter if that can be had."""
        _log.warning("%s: refused: %s", delivery.subject, reason)

        def take_out(_error: StoreError | None) -> None:
            if not self._wire.closed:
                self._wire.publish(delivery.reply, term(reason))

        refused = Refused(COMMANDS_STREAM, delivery.subject, delivery.body, reason)
        self._wire.store(dead_subject(COMMANDS_STREAM, self._agent.name), letter(refused), take_out)

    def _on_through(self, attempt: Attempt) -> None:
        self._attempts.pop(attempt, None)
        if attempt.settlement.reported:
            self._itself.ended(failed=attempt.failed)
        if self._current.get(attempt.subject) is attempt:
            del self._current[attempt.subject]
        self._through.set()
        self._pull.freed()

    def _on_stop_hint(self, subject: str, _reply: str, headers: bytes, body: bytes) -> None:
        if not body.isdigit() or is_stray(headers):
            return
        task, step = subject.split(".")[-2:]
        for attempt in self._attempts:
            command = attempt.command
            named = (command.task, command.step, command.phase) == (task, step, "action")
            if named and command.attempt <= int(body[:9]):
                attempt.cancellation.set()

    def _keep_all(self) -> None:
        for attempt in self._attempts:
            attempt.settlement.keep()

    async def _keep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._keep_every_s)
            if self._wire.connected:
                self._keep_all()

    def _look(self) -> Presence:
        return Presence(
            agent=self._agent.name,
            worker=self.name,
            actions=sorted(self._agent.handlers),
            host=socket.gethostname(),
            pid=os.getpid(),
            busy=len(self._attempts),
            slots=self._slots,
            stopping=self._stopping,
            server=self._wire.server,
        )


def _subjects(attempts: Iterable[Attempt], doubtful: dict[str, str]) -> list[str]:
    """The commands that are with a worker, whatever is being done with them."""
    return sorted({*(attempt.subject for attempt in attempts), *doubtful.values()})


def _read(delivery: Delivery, agent: str) -> tuple[CommandSubject, Command, UUID]:
    """The command, checked against its subject, and that against the agent that we are.

    SubjectError or InvalidInput says what is wrong.
    """
    subject = parse_command_subject(delivery.subject)
    if subject.agent != agent:
        raise InvalidInput(f"the command is for agent {subject.agent!r}, and this is {agent!r}")
    command = decode_command(delivery.body)
    if (command.task, command.step) != (subject.task, subject.step):
        raise InvalidInput("the command names another task or step than its subject does")
    if command.data is None and not command.dataref:
        raise InvalidInput("data: the command has neither data nor a dataref")
    try:
        return subject, command, UUID(command.task)
    except ValueError as error:
        raise InvalidInput(f"task: {error}") from error


def _word(text: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "-" for each in text)[:32]
