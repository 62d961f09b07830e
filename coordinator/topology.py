"""The streams and consumers: declared as configured, and looked into.

What a stream holds tells which dispatches are in order: a command that is there is queued or
worked on; an event that is there is about to be handled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from uuid import UUID

from headway.agents import subjects
from headway.agents.connection import Connection
from headway.coordinator import streams
from headway.coordinator.jetstream import STREAM_NAME_IN_USE, JetStreamError, ask

LISTED_ONE_BY_ONE_MAX = 16  # tasks; more are answered from one listing of the whole stream


class Topology:
    """JetStream as one coordinator sees it."""

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
