"""Commands out, news out: JetStream behind a few verbs.

Always holds: a command counts as stored only after its PubAck. Whether another copy sits on its
subject is the stream's to say: an older one is removed first, the very same one is as good.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID

from headway.agents import payloads, subjects
from headway.agents.connection import Connection
from headway.agents.deadletters import Refused, letter
from headway.agents.errors import Unavailable
from headway.agents.messages import INLINE_MAX_BYTES
from headway.coordinator.commands import Outgoing, Sought
from headway.coordinator.decisions import Decision
from headway.coordinator.errors import BusUnavailable
from headway.coordinator.jetstream import JetStreamError, ask, remove
from headway.coordinator.streams import HINTS
from headway.sagas.actions import Stop

_LOG = logging.getLogger(__name__)

LATE_S = 1.5  # from commit to publication; what peers find missing sooner, they know to be lost
HINTS_MAX = 500  # in one second: nobody follows more, and each costs
PAYLOAD_MAX_BYTES = 64 * 1_048_576  # of what others put: none may fill the memory


class Bus:
    """What one coordinator publishes."""

    def __init__(
        self,
        connection: Connection,
        sign: Callable[[str, str, bytes], bytes],
        clock: Callable[[], int],
    ) -> None:
        """`sign` puts the signature into a command for an agent, on a subject."""
        self._sign = sign
        self._clock = clock
        self._connection = connection
        self._wire = connection.wire
        self._connected_at = 0.0  # monotonic
        self._hints = _Allowance(HINTS_MAX)
        self._wire.on_reconnect(self._note_reconnect)

    async def dispatch(self, commands: Sequence[Outgoing]) -> list[bool]:
        """Publish commands; true for each that is known to be in the stream now."""
        now_ms, now = self._clock(), time.monotonic()
        bodies: list[bytes | None] = []
        for command in commands:
            if self._held_up(command, now):
                command.attributes["late"] = True
            if len(command.data) <= INLINE_MAX_BYTES:
                bodies.append(self._signed(command, command.body(now_ms)))
            else:
                bodies.append(await self._body_by_reference(command))
                now_ms, now = self._clock(), time.monotonic()
        sendable = [
            (command.subject, body)
            for command, body in zip(commands, bodies, strict=True)
            if body is not None
        ]
        outcomes = iter(await self._wire.store_all(sendable))
        stored: list[bool] = []
        for command, body in zip(commands, bodies, strict=True):
            error = next(outcomes) if body is not None else None
            if body is not None and error is not None and error.code == payloads.SUBJECT_TAKEN:
                stored.append(command.fresh or await self._replace(command, body))
            else:
                stored.append(body is not None and error is None)
        return stored

    async def withdraw(self, commands: Sequence[Sought]) -> set[Sought]:
        """Remove commands that are no longer wanted, as far as they are still there; returns those
        that no agent ever had."""
        unbegun: set[Sought] = set()
        for command in commands:
            try:
                if await self._removed_unbegun(command):
                    unbegun.add(command)
            except (BusUnavailable, JetStreamError) as error:
                _LOG.info("a command could not be withdrawn and will be found stale: %s", error)
        return unbegun

    def stop(self, agent: str, task: UUID, stop: Stop) -> None:
        """Hint to a running handler; lossy."""
        self._publish(subjects.stop_subject(agent, str(task), stop.step), b"%d" % stop.attempt)

    def announce(self, decision: Decision, kind: str) -> None:
        """Tell the feed where a task stands; lossy, and said again for a repeated event. There are
        HINTS_MAX hints a second at most."""
        now_ms = self._clock()
        if kind in HINTS and not self._hints.allows(now_ms // 1000):
            return
        task, definition = decision.task, decision.definition
        assert task is not None
        assert definition is not None
        text, saga = str(decision.id), definition.name
        # Names and ids need no escaping, and this is said four times a task.
        news = (
            f'{{"task":"{text}","saga":"{saga}","status":"{task.status}",'
            f'"version":{task.version},"at":"{_moment(now_ms)}"}}'
        )
        self._publish(subjects.feed_subject(saga, text, kind), news.encode())

    def refuse(self, refused: Refused, kept: Callable[[], None]) -> None:
        """Keep a refused message, with the reason, for people to look at; then call `kept`."""
        _LOG.warning("refused a message on %s: %s", refused.subject, refused.reason)
        try:
            self._wire.store(
                subjects.dead_subject(refused.stream),
                letter(refused),
                lambda error: kept() if error is None else None,
            )
        except ConnectionError as error:
            _LOG.warning("a refused message was not kept and will come again: %s", error)

    async def fetch_payload(self, ref: str, digest: str) -> bytes:
        """A payload that travelled by reference; PayloadLost if it is gone or was changed."""
        return await payloads.get(self._wire, ref, digest, max_bytes=PAYLOAD_MAX_BYTES)

    async def put_payload(self, agent: str, task: UUID, body: bytes) -> tuple[str, str]:
        """Store a payload for an agent; its reference and its digest."""
        space = subjects.payloads_to(agent)
        return await payloads.put(self._wire, space, str(task), body)

    def _note_reconnect(self) -> None:
        self._connected_at = time.monotonic()

    def _held_up(self, command: Outgoing, now: float) -> bool:
        """Whether a peer may have thought this publication lost, and made another one: that would
        be answered, and this one must not be run unasked."""
        cut = self._connected_at > command.since
        return cut or now - command.since > LATE_S

    async def _body_by_reference(self, command: Outgoing) -> bytes | None:
        try:
            ref, digest = await self.put_payload(command.agent, command.task, command.data)
        except Unavailable as error:
            _LOG.warning("a command's payload could not be stored: %s", error)
            return None
        return self._signed(command, command.body_by_reference(self._clock(), ref, digest))

    def _signed(self, command: Outgoing, body: bytes) -> bytes:
        return self._sign(command.agent, command.subject, body)

    async def _removed_unbegun(self, command: Sought) -> bool:
        """Remove a command; whether its consumer had not got as far, and now never will."""
        stream, subject = subjects.COMMANDS_STREAM, command.subject
        sequence = await remove(self._wire, stream, subject, command.outdates)
        if sequence is None:
            return False
        agent = subjects.parse_command_subject(subject).agent
        info = await ask(self._wire, f"CONSUMER.INFO.{subjects.COMMANDS_STREAM}.{agent}")
        begun: int = info["delivered"]["stream_seq"]
        return sequence > begun

    async def _replace(self, command: Outgoing, body: bytes) -> bool:
        """Store a command in the place of an earlier one; one that is later stays."""
        subject = command.subject
        try:
            await remove(self._wire, subjects.COMMANDS_STREAM, subject, command.outdates)
        except (BusUnavailable, JetStreamError) as error:
            _LOG.warning("an older command could not be removed: %s", error)
            return False
        outcome = (await self._wire.store_all([(subject, body)]))[0]
        return outcome is None

    def _publish(self, subject: str, body: bytes) -> None:
        try:
            self._wire.publish(subject, body)
        except (ConnectionError, ValueError) as error:
            _LOG.debug("not published on %s: %s", subject, error)


class _Allowance:
    """So many in a second."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._second = 0
        self._left = most

    def allows(self, second: int) -> bool:
        """Whether there may be one more; then there is."""
        if second != self._second:
            self._second, self._left = second, self._most
        self._left -= 1
        return self._left >= 0


@lru_cache(maxsize=1)
def _moment(ms: int) -> str:
    """RFC 3339, in UTC; the same for all that is said in one millisecond."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
