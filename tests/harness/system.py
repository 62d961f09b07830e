"""A whole system under test: both servers, a client, a downstream, and actors to be harmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from harness.actors import Actor, Actors
from harness.audit import audit
from harness.coordination import client_of, coordinators, working
from harness.downstream import Downstream
from harness.eventually import eventually
from harness.services import RunningNats
from harness.shop import shop
from headway.agents import Client
from headway.agents.subjects import DEAD_STREAM

SETTLED = "status IN ('succeeded', 'compensated', 'parked', 'failed_to_compensate')"


@dataclass
class System:
    nats: RunningNats
    postgres_url: str
    client: Client
    downstream: Downstream
    actors: Actors

    async def coordinator(self, *arguments: str) -> Actor:
        """Start a coordinator as a process."""
        urls = {
            "HEADWAY_NATS_URL": self.nats.url,
            "HEADWAY_POSTGRES_URL": self.postgres_url,
        }
        return await self.actors.start("coordinator_process", *arguments, **urls)

    async def agent(self, *arguments: str, nats_url: str = "") -> Actor:
        """Start an instance of agent `shop` as a process, on our server or by another URL."""
        return await self.actors.start(
            "agent_process",
            "--downstream",
            str(self.downstream.path),
            *arguments,
            HEADWAY_NATS_URL=nats_url or self.nats.url,
        )

    async def coordinators(self, count: int) -> None:
        """Wait until so many coordinators have said that they live."""

        async def beat() -> bool:
            rows = await self.fetch("SELECT count(*) FROM headway.coordinators")
            return bool(rows[0]["count"] == count)

        await eventually(beat)

    def coordinating(self, count: int = 1) -> Any:
        """Coordinators in this process, while the block lasts."""
        return coordinators(self.nats.url, self.postgres_url, count)

    def working(self, **options: Any) -> Any:
        """An instance of agent `shop` in this process, while the block lasts."""
        return working(self.nats.url, shop(self.downstream), **options)

    async def fetch(self, statement: str, *arguments: Any) -> Any:
        """The rows of an SQL statement."""
        connection = await asyncpg.connect(self.postgres_url)
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await connection.close()

    async def settled(self) -> int:
        """How many tasks are ended or parked."""
        [row] = await self.fetch(f"SELECT count(*) FROM headway.tasks WHERE {SETTLED}")
        return int(row["count"])

    async def all_settled(self, count: int, within_s: float = 30.0) -> Counter[str]:
        """Wait until `count` tasks are ended or parked, and count them by status."""

        async def done() -> bool:
            settled = await self.settled()
            assert settled >= count, f"{settled} of {count} tasks are settled"
            return True

        await eventually(done, within_s)
        rows = await self.fetch("SELECT status, count(*) FROM headway.tasks GROUP BY status")
        return Counter({row["status"]: row["count"] for row in rows})

    async def called(self, task: UUID, count: int = 1, within_s: float = 10.0) -> None:
        """Wait until the downstream saw `count` calls of a task."""
        await eventually(
            lambda: len(self.downstream.calls(task)) >= count, within_s, what=f"call {count}"
        )

    async def dead_letters(self) -> list[dict[str, Any]]:
        """Everything in HW_DEAD, oldest first; advisories too."""
        jetstream = self.client.connection.nc.jetstream()
        last = (await jetstream.stream_info(DEAD_STREAM)).state.last_seq
        return [
            orjson.loads((await jetstream.get_msg(DEAD_STREAM, sequence)).data)
            for sequence in range(1, last + 1)
        ]


@asynccontextmanager
async def system_at(nats: RunningNats, postgres_url: str, folder: Path) -> AsyncIterator[System]:
    """A system on these servers; at the end no actor is left and the audit holds."""
    downstream = Downstream(folder / "downstream.sqlite")
    actors = Actors(folder)
    try:
        async with client_of(nats.url) as client:
            system = System(nats, postgres_url, client, downstream, actors)
            yield system
    finally:
        await actors.end()
        downstream.close()
    await audit(postgres_url)
