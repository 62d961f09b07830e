"""A whole system under load: two coordinators and three agents as processes.

Tasks are submitted all the time; the downstream's own log says what came of each.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from harness.actors import Actor, Actors
from harness.audit import audit
from harness.coordination import registered
from harness.downstream import Downstream
from harness.eventually import eventually
from harness.shop import linear
from headway.agents import Client
from headway.agents.errors import HeadwayError

RATE_PER_S = 25
REJECTED_EVERY = 5  # each fifth is rejected at its last step, and undone
SETTLE_S = 60.0


@dataclass
class Load:
    """Submits tasks at a steady rate while the block lasts. `accepted`: when, by task."""

    client: Client
    accepted: dict[UUID, float] = field(default_factory=dict)
    refused: list[HeadwayError] = field(default_factory=list)
    number: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Load]:
        going = asyncio.create_task(self._submit())
        try:
            yield self
        finally:
            going.cancel()
            with suppress(asyncio.CancelledError):
                await going

    async def _submit(self) -> None:
        async with asyncio.TaskGroup() as under_way:
            with suppress(asyncio.CancelledError):
                while True:
                    under_way.create_task(self._one())
                    await asyncio.sleep(1 / RATE_PER_S)

    async def _one(self) -> None:
        self.number += 1
        order = {"number": self.number, "a": "sleep=0.02"}
        if self.number % REJECTED_EVERY == 0:
            order["c"] = "reject"
        try:
            receipt = await self.client.submit("linear", order)
        except HeadwayError as error:
            self.refused.append(error)
        else:
            self.accepted[receipt.task] = time.time()


@dataclass(frozen=True)
class Verdict:
    """What an audit from outside found: tasks by status, effects lost and effects doubled."""

    statuses: Counter[str]
    lost: int
    doubled: int
    repeated: int  # calls beyond the first of an operation: harmless, but they cost


@dataclass
class LoadedSystem:
    """Always holds: what `load` was told is accepted is what the audit asks for."""

    nats_url: str
    postgres_url: str
    replicas: int
    client: Client
    downstream: Downstream
    actors: Actors
    load: Load

    async def coordinator(self) -> Actor:
        return await self.actors.start(
            "coordinator_process",
            HEADWAY_NATS_URL=self.nats_url,
            HEADWAY_POSTGRES_URL=self.postgres_url,
            HEADWAY_REPLICAS=str(self.replicas),
        )

    async def agent(self) -> Actor:
        return await self.actors.start(
            "agent_process",
            *("--downstream", str(self.downstream.path)),
            HEADWAY_NATS_URL=self.nats_url,
        )

    async def goes_on(self, within_s: float = SETTLE_S) -> float:
        """Seconds until a task that is submitted now has succeeded."""
        began_at = time.monotonic()
        receipt = await self.client.submit("linear", {"number": 0})
        self.load.accepted[receipt.task] = time.time()
        view = await self.client.result(receipt.task, timeout=within_s)
        assert view.status == "succeeded", view
        return time.monotonic() - began_at

    def longest_gap(self, since: float) -> float:
        """The longest time without a call of the downstream, since Unix time `since`."""
        times = [since, *(call["at"] for call in self.downstream.calls() if call["at"] > since)]
        return max((after - before for before, after in pairwise(times)), default=0.0)

    async def settled(self) -> Verdict:
        """Wait until every accepted task has ended, then audit from outside."""
        refused = [str(error) for error in self.load.refused]
        assert refused == [], refused

        async def all_ended() -> bool:
            counts = await audit(self.postgres_url)
            return counts.total() >= len(self.load.accepted)

        await eventually(all_ended, SETTLE_S, what="every accepted task has ended")
        return Verdict(
            await audit(self.postgres_url), *_judged(self.downstream, self.load.accepted)
        )


def _judged(downstream: Downstream, accepted: dict[UUID, float]) -> tuple[int, int, int]:
    """How many effects are lost, doubled and repeated, by the downstream's log alone."""
    effects: dict[str, Counter[str]] = {}
    doubled = 0
    seen: set[tuple[str, str]] = set()
    for task, step, state in downstream.states():
        effects.setdefault(task, Counter())[state] += 1
        doubled += (task, step) in seen
        seen.add((task, step))
    lost = sum(not _explained(effects.get(str(task), Counter())) for task in accepted)
    operations = Counter(call["operation"] for call in downstream.calls())
    return lost, doubled, sum(operations.values()) - len(operations)


def _explained(effects: Counter[str]) -> bool:
    """All three steps done, or nothing left of a task that was undone."""
    return effects["done"] == 3 or (effects["done"] == 0 and effects["undone"] == 2)


@asynccontextmanager
async def loaded_system(
    nats_url: str, postgres_url: str, folder: Path, *, replicas: int = 1
) -> AsyncIterator[LoadedSystem]:
    """Two coordinators and three agents on these servers; no load yet."""
    downstream, actors = Downstream(folder / "downstream.sqlite"), Actors(folder)
    try:
        async with await Client.connect(nats_url) as client:
            system = LoadedSystem(
                nats_url, postgres_url, replicas, client, downstream, actors, Load(client)
            )
            for _ in range(2):
                await system.coordinator()
            await registered(client, linear())
            for _ in range(3):
                await system.agent()
            yield system
    finally:
        await actors.end()
        downstream.close()
