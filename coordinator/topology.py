"""The streams and consumers: declared as configured, and looked into.

What a stream holds tells which dispatches are in order: a command that is there is queued or
worked on; an event that is there is about to be handled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from headway.agents import subjects
from headway.agents.connection import Connection
from headway.coordinator import streams
from headway.coordinator.commands import Sought
from headway.coordinator.jetstream import (
    STREAM_NAME_IN_USE,
    JetStreamError,
    ask,
    last_message,
    next_message,
)

LISTED_ONE_BY_ONE_MAX = 16  # looked up alone; more are first looked for in a listing of the stream
LOOKED_UP_AT_ONCE = 64
WALKERS = 8  # how many walk a share of a stream's sequences each, side by side

T = TypeVar("T")


class Topology:
    """JetStream as one coordinator sees it."""

    def __init__(
        self,
        connection: Connection,
        replicas: int,
        delivering: Callable[[str], Mapping[str, Any]] = lambda _agent: {},
    ) -> None:
        """`delivering` says what is unusual about an agent's consumer at the moment."""
        self._connection = connection
        self._delivering = delivering
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

    async def check_streams(self) -> None:
        """JetStreamError unless each stream is there, with a leader where it has several copies."""
        for configuration in streams.streams(self._replicas):
            await ask(self._wire, f"STREAM.INFO.{configuration['name']}")

    async def ensure_agent(self, agent: str) -> None:
        """Make sure that an agent's consumer exists."""
        if agent not in self._consumers:
            request = streams.agent_consumer(agent)
            request["config"] |= dict(self._delivering(agent))
            await self._declare_consumer(request)
            self._consumers.add(agent)

    async def queued(self, agent: str) -> tuple[int, int]:
        """How many commands wait for an agent, and how many it works on."""
        info = await ask(self._wire, f"CONSUMER.INFO.{subjects.COMMANDS_STREAM}.{agent}")
        return info["num_pending"], info["num_ack_pending"]

    async def delivered(self, agent: str) -> int:
        """The last sequence that was given to any worker of an agent."""
        info = await ask(self._wire, f"CONSUMER.INFO.{subjects.COMMANDS_STREAM}.{agent}")
        sequence: int = info["delivered"]["stream_seq"]
        return sequence

    async def unanswered(self, agent: str, upto: int) -> list[tuple[str, bytes]]:
        """An agent's commands up to a sequence that it got and did not answer: subject and body."""
        floor = await self._ack_floor(subjects.COMMANDS_STREAM, agent)
        share = max(1, -(-(upto - floor) // WALKERS))
        walks = (
            self._walk(subjects.commands_of_agent(agent), first, min(first + share - 1, upto))
            for first in range(floor + 1, upto + 1, share)
        )
        return [each for walked in await asyncio.gather(*walks) for each in walked]

    async def outstanding(self, commands: Sequence[Sought]) -> set[Sought]:
        """Which of these commands are queued or worked on.

        One that is there though its consumer is through with it is not: nobody gets it any more.
        Nor is one of another attempt on the same subject.
        """
        wanted = list(dict.fromkeys(commands))
        if len(wanted) > LISTED_ONE_BY_ONE_MAX:
            listed = await self._listed(subjects.COMMANDS_STREAM, subjects.COMMANDS)
            wanted = [each for each in wanted if each.subject in listed]
        agents = {each: subjects.parse_command_subject(each.subject).agent for each in wanted}
        floors = {
            agent: await self._ack_floor(subjects.COMMANDS_STREAM, agent)
            for agent in dict.fromkeys(agents.values())
        }
        found: set[Sought] = set()
        for chunk in _chunks(wanted, LOOKED_UP_AT_ONCE):
            lookups = (
                last_message(self._wire, subjects.COMMANDS_STREAM, each.subject) for each in chunk
            )
            for each, message in zip(chunk, await asyncio.gather(*lookups), strict=True):
                waits = message is not None and message.sequence > floors[agents[each]]
                if waits and message is not None and each.is_in(message.body):
                    found.add(each)
        return found

    async def unread(self, tasks: Sequence[UUID]) -> set[UUID]:
        """Which of these tasks have events in the stream that somebody is still to handle.

        One that is there though the coordinators' consumer is through with it comes to nobody any
        more: a server whose disk was full, or that was killed, may have kept it nevertheless.
        """
        if len(tasks) > LISTED_ONE_BY_ONE_MAX:
            listed = await self._listed(subjects.EVENTS_STREAM, f"{subjects.PREFIX}.events.*.*.*")
        else:
            listed = set()
            for task in tasks:
                wanted = subjects.stored_events_of_task(str(task))
                listed |= await self._listed(subjects.EVENTS_STREAM, wanted)
        named = {str(task): task for task in tasks}
        waiting = sorted(each for each in listed if each.rpartition(".")[2] in named)
        if not waiting:
            return set()
        floor = await self._ack_floor(subjects.EVENTS_STREAM, subjects.COORDINATOR)
        found: set[UUID] = set()
        for chunk in _chunks(waiting, LOOKED_UP_AT_ONCE):
            lookups = (last_message(self._wire, subjects.EVENTS_STREAM, each) for each in chunk)
            for subject, message in zip(chunk, await asyncio.gather(*lookups), strict=True):
                if message is not None and message.sequence > floor:
                    found.add(named[subject.rpartition(".")[2]])
        return found

    async def _ack_floor(self, stream: str, consumer: str) -> int:
        """Up to which sequence a consumer is through; 0 if it is still to be made."""
        try:
            info = await ask(self._wire, f"CONSUMER.INFO.{stream}.{consumer}")
        except JetStreamError:
            return 0
        floor: int = info["ack_floor"]["stream_seq"]
        return floor

    async def _walk(self, wanted: str, first: int, last: int) -> list[tuple[str, bytes]]:
        """The commands from one sequence to another whose subject matches."""
        found: list[tuple[str, bytes]] = []
        while first <= last:
            message = await next_message(self._wire, subjects.COMMANDS_STREAM, wanted, first)
            if message is None or message.sequence > last:
                break
            found.append((message.subject, message.body))
            first = message.sequence + 1
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


def _chunks(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(whole), size):
        yield whole[start : start + size]
