"""Commands out, news out, and what the streams hold: JetStream behind a few verbs.

Always holds: a command counts as stored only after its PubAck. Whether another copy sits on its
subject is the stream's to say: an older one is purged first, the very same one is as good.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

import orjson
from headway.agents import payloads, subjects
from headway.agents.connection import Connection
from headway.agents.errors import Unavailable
from headway.agents.messages import INLINE_MAX_BYTES
from headway.coordinator import streams
from headway.coordinator.commands import Outgoing
from headway.coordinator.decisions import Decision
from headway.coordinator.errors import BusUnavailable
from headway.coordinator.jetstream import (
    STREAM_NAME_IN_USE,
    JetStreamError,
    ask,
)

_LOG = logging.getLogger(__name__)

SUBJECT_TAKEN = 10077
LISTED_ONE_BY_ONE_MAX = 16  # tasks; more are answered from one listing of the whole stream
DEAD_BODY_MAX_BYTES = 65_536  # of a refused message that is kept


class Bus:
    """One coordinator's JetStream."""

    def __init__(self, connection: Connection, replicas: int) -> None:
        self._connection = connection
        self._wire = connection.wire
        self._replicas = replicas
        self._consumers: set[str] = set()

    @property
    def server_version(self) -> str:
        """Of the nats-server that we are connected to."""
        return str(self._connection.nc.connected_server_version)

    async def declare(self, agents: Iterable[str]) -> dict[str, str]:
        """Make sure that streams and consumers exist as configured; returns when each stream was
        created, which tells one whose store was lost."""
        created: dict[str, str] = {}
        for configuration in streams.streams(self._replicas):
            name = configuration["name"]
            try:
                info = await ask(self._wire, f"STREAM.CREATE.{name}", configuration)
            except JetStreamError as error:
                if error.code != STREAM_NAME_IN_USE:
                    raise
                info = await ask(self._wire, f"STREAM.UPDATE.{name}", configuration)
            created[name] = info["created"]
        for stream in (subjects.TASKS_STREAM, subjects.EVENTS_STREAM):
            await self._declare_consumer(streams.shared_consumer(stream))
        self._consumers.clear()
        for agent in agents:
            await self.ensure_agent(agent)
        return created

    async def identities(self) -> dict[str, str]:
        """When each stream was created, as of now; '' for one that is gone or lacks a consumer."""
        found: dict[str, str] = {}
        wanted = Counter({subjects.TASKS_STREAM: 1, subjects.EVENTS_STREAM: 1})
        wanted[subjects.COMMANDS_STREAM] = len(self._consumers)
        for configuration in streams.streams(self._replicas):
            name = configuration["name"]
            found[name] = ""
            with suppress(JetStreamError):
                info = await ask(self._wire, f"STREAM.INFO.{name}")
                if info["state"]["consumer_count"] >= wanted[name]:
                    found[name] = info["created"]
        return found

    async def ensure_agent(self, agent: str) -> None:
        """Make sure that an agent's consumer exists."""
        if agent not in self._consumers:
            await self._declare_consumer(streams.agent_consumer(agent))
            self._consumers.add(agent)

    async def queued(self, agent: str) -> tuple[int, int]:
        """How many commands wait for an agent, and how many it works on."""
        info = await ask(self._wire, f"CONSUMER.INFO.{subjects.COMMANDS_STREAM}.{agent}")
        return info["num_pending"], info["num_ack_pending"]

    async def dispatch(self, commands: Sequence[Outgoing]) -> list[bool]:
        """Publish commands; true for each that is known to be in the stream now."""
        bodies = [await self._body(command) for command in commands]
        sendable = [
            (command.subject, body)
            for command, body in zip(commands, bodies, strict=True)
            if body is not None
        ]
        outcomes = iter(await self._wire.store_all(sendable))
        stored: list[bool] = []
        for command, body in zip(commands, bodies, strict=True):
            error = next(outcomes) if body is not None else None
            if body is not None and error is not None and error.code == SUBJECT_TAKEN:
                stored.append(command.fresh or await self._replace(command.subject, body))
            else:
                stored.append(body is not None and error is None)
        return stored

    async def withdraw(self, taken: Sequence[str]) -> None:
        """Remove commands that are no longer wanted, as far as they are still there."""
        for subject in taken:
            try:
                await self._purge(subject)
            except (BusUnavailable, JetStreamError) as error:
                _LOG.info("a command could not be withdrawn and will be found stale: %s", error)

    def stop(self, agent: str, task: UUID) -> None:
        """Hint to running handlers of a task; lossy."""
        self._publish(subjects.stop_subject(agent, str(task)), b"")

    def announce(self, decision: Decision, kind: str) -> None:
        """Tell the feed where a task stands; lossy, and said again for a repeated event."""
        task, definition = decision.task, decision.definition
        assert task is not None
        assert definition is not None
        text = str(decision.id)
        news = {
            "task": text,
            "saga": definition.name,
            "status": task.status,
            "version": task.version,
            "at": datetime.now(UTC),
        }
        self._publish(subjects.feed_subject(definition.name, text, kind), orjson.dumps(news))

    def refuse(
        self, origin: str, subject: str, body: bytes, reason: str, kept: Callable[[], None]
    ) -> None:
        """Keep a refused message, with the reason, for people to look at; then call `kept`."""
        _LOG.warning("refused a message on %s: %s", subject, reason)
        record = orjson.dumps(
            {
                "stream": origin,
                "subject": subject,
                "reason": reason,
                "at": datetime.now(UTC),
                "size": len(body),
                "body": body[:DEAD_BODY_MAX_BYTES].decode("utf-8", "replace"),
            }
        )
        try:
            self._wire.store(
                subjects.dead_subject(origin),
                record,
                lambda error: kept() if error is None else None,
            )
        except ConnectionError as error:
            _LOG.warning("a refused message was not kept and will come again: %s", error)

    async def outstanding(self, tasks: Sequence[UUID]) -> set[str]:
        """The subjects of these tasks' commands that are in the stream, queued or worked on."""
        if len(tasks) > LISTED_ONE_BY_ONE_MAX:
            return await self._listed(subjects.COMMANDS_STREAM, subjects.COMMANDS)
        found: set[str] = set()
        for task in tasks:
            wanted = subjects.commands_of_task(str(task))
            found |= await self._listed(subjects.COMMANDS_STREAM, wanted)
        return found

    async def unread(self, tasks: Sequence[UUID]) -> set[UUID]:
        """Which of these tasks have events in the stream that nobody has handled yet."""
        if len(tasks) > LISTED_ONE_BY_ONE_MAX:
            listed = await self._listed(subjects.EVENTS_STREAM, f"{subjects.PREFIX}.events.*.*.*")
            waiting = {subject.rpartition(".")[2] for subject in listed}
            return {task for task in tasks if str(task) in waiting}
        found: set[UUID] = set()
        for task in tasks:
            wanted = subjects.stored_events_of_task(str(task))
            if await self._listed(subjects.EVENTS_STREAM, wanted):
                found.add(task)
        return found

    async def fetch_payload(self, ref: str, digest: str) -> bytes:
        """A payload that travelled by reference; PayloadLost if it is gone or was changed."""
        return await payloads.get(self._connection.nc, ref, digest)

    async def put_payload(self, task: UUID, body: bytes) -> tuple[str, str]:
        return await payloads.put(self._connection.nc, str(task), body)

    async def _body(self, command: Outgoing) -> bytes | None:
        if len(command.data) <= INLINE_MAX_BYTES:
            return command.body()
        try:
            ref, digest = await self.put_payload(command.task, command.data)
        except Unavailable as error:
            _LOG.warning("a command's payload could not be stored: %s", error)
            return None
        return command.body_by_reference(ref, digest)

    async def _replace(self, subject: str, body: bytes) -> bool:
        try:
            await self._purge(subject)
        except (BusUnavailable, JetStreamError) as error:
            _LOG.warning("an older command could not be purged: %s", error)
            return False
        outcome = (await self._wire.store_all([(subject, body)]))[0]
        return outcome is None

    async def _purge(self, subject: str) -> None:
        await ask(self._wire, f"STREAM.PURGE.{subjects.COMMANDS_STREAM}", {"filter": subject})

    async def _listed(self, stream: str, wanted: str) -> set[str]:
        """All subjects of a stream that match and hold a message."""
        found: set[str] = set()
        while True:
            request = {"subjects_filter": wanted, "offset": len(found)}
            info = await ask(self._wire, f"STREAM.INFO.{stream}", request)
            page = info["state"].get("subjects") or {}
            found |= page.keys()
            if not page or len(found) >= info.get("total", 0):
                return found

    async def _declare_consumer(self, request: dict[str, object]) -> None:
        config = request["config"]
        assert isinstance(config, dict)
        filtered = config.get("filter_subject")
        place = f"{request['stream_name']}.{config['name']}"
        await ask(
            self._wire,
            f"CONSUMER.CREATE.{place}" + (f".{filtered}" if filtered else ""),
            request,
        )

    def _publish(self, subject: str, body: bytes) -> None:
        try:
            self._wire.publish(subject, body)
        except (ConnectionError, ValueError) as error:
            _LOG.debug("not published on %s: %s", subject, error)
