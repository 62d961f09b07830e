"""Coordinators and agents of the last kept version are replaced one by one by those of this one,
and agents back, while orders come in: every order ends as it should, and nothing is done twice.

A step that its agent rejected left nothing, so it is not undone. But one is, as `unknown`, whose
command was given to somebody else before: nobody knows how far the first one had come.
"""

from __future__ import annotations

import asyncio
import shutil
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from harness.actors import Actor, Actors
from harness.audit import audit
from harness.coordination import client_of, registered
from harness.eventually import eventually
from harness.services import RunningNats
from headway.agents import Client
from headway.agents.views import HistoryEntry
from headway.coordinator.database import migrated
from upgrades.shopfloor import line

HERE = Path(__file__).parent
TESTS = HERE.parent
KEPT = sorted((HERE / "fixtures").glob("*.whl"))

ORDERS_EVERY_S = 0.03
FAILS_EVERY = 5  # orders
REJECTED = "paint"  # the last step, of those that fail
IN_TIME_S = 60.0


@dataclass
class Shop:
    """The processes of one system, of either version, and what they left behind."""

    actors: Actors
    urls: dict[str, str]
    log: Path
    paths: dict[str, str]

    async def coordinator(self, version: str) -> Actor:
        actor = await self.start(version, "coordinator")
        await eventually(lambda: " serves" in actor.log.read_text(), IN_TIME_S, what="it serves")
        return actor

    async def agent(self, version: str) -> Actor:
        actor = await self.start(version, "agent", "shopfloor:shop")
        await eventually(lambda: " works as " in actor.log.read_text(), IN_TIME_S, what="it works")
        return actor

    async def start(self, version: str, *arguments: str) -> Actor:
        return await self.actors.start(
            "cli",
            *arguments,
            folder=HERE,
            PYTHONPATH=self.paths[version],
            SHOPFLOOR_LOG=str(self.log),
            **self.urls,
        )

    def effects(self) -> Counter[tuple[str, str, str]]:
        """How often each thing was done: task, step, what."""
        lines = self.log.read_text().splitlines()
        return Counter((task, step, what) for task, step, what in map(str.split, lines))


@pytest.fixture(params=KEPT, ids=lambda wheel: wheel.name.split("-")[1])
async def shop(
    request: pytest.FixtureRequest, nats_server: RunningNats, postgres_url: str, tmp_path: Path
) -> AsyncIterator[Shop]:
    old = tmp_path / "old"
    with zipfile.ZipFile(request.param) as wheel:
        wheel.extractall(old)
    actors = Actors(tmp_path)
    urls = {"HEADWAY_NATS_URL": nats_server.url, "HEADWAY_POSTGRES_URL": postgres_url}
    paths = {"old": f"{old}:{HERE}:{TESTS}", "new": f"{HERE}:{TESTS}"}
    yield Shop(actors, urls, tmp_path / "effects.log", paths)
    await actors.end()
    shutil.rmtree(old)


async def test_versions_are_rolled_forward_under_load_and_agents_back(
    shop: Shop, nats_url: str, postgres_url: str
) -> None:
    coordinators = [await shop.coordinator("old") for _ in range(2)]
    agents = [await shop.agent("old") for _ in range(2)]
    async with client_of(nats_url) as client:
        await registered(client, line())
        orders: dict[UUID, bool] = {}
        enough = asyncio.Event()
        load = asyncio.create_task(keep_ordering(client, orders, enough))
        for place in range(2):
            agents[place], coordinators[place] = await asyncio.gather(
                replaced(agents[place], shop.agent("new")),
                replaced(coordinators[place], shop.coordinator("new")),
            )
        for place in range(2):
            agents[place] = await replaced(agents[place], shop.agent("old"))
        enough.set()
        await load
        ends = {task: (await client.result(task, timeout=IN_TIME_S)).status for task in orders}
        histories = {task: await client.history(task) for task, fails in orders.items() if fails}
        doubted = {task for task, entries in histories.items() if is_doubted(entries)}
        wanted = expected(orders, doubted)
        differing = shop.effects() - wanted or wanted - shop.effects()
        told = [(each, await client.history(UUID(each[0]))) for each in differing]
    assert ends == {task: "compensated" if fails else "succeeded" for task, fails in orders.items()}
    assert shop.effects() == wanted, told
    assert sum((await audit(postgres_url)).values()) == len(orders)
    assert len(orders) >= 50


async def test_an_older_coordinator_refuses_a_newer_schema_and_says_so(
    shop: Shop, postgres_url: str
) -> None:
    async with migrated(postgres_url):
        older = await shop.start("old", "coordinator")
        assert await older.ended(IN_TIME_S) != 0
    assert "upgrade Headway, or use another database" in older.log.read_text()


async def replaced(old: Actor, starting: Awaitable[Actor]) -> Actor:
    """Start the next one, then stop the one before it in an orderly way."""
    new = await starting
    old.terminate()
    assert await old.ended(IN_TIME_S) == 0
    return new


async def keep_ordering(client: Client, orders: dict[UUID, bool], enough: asyncio.Event) -> None:
    while not enough.is_set():
        fails = len(orders) % FAILS_EVERY == 0
        order = {"number": len(orders), **({"fails": REJECTED} if fails else {})}
        receipt = await client.submit("line", order)
        orders[receipt.task] = fails
        await asyncio.sleep(ORDERS_EVERY_S)


def is_doubted(history: Sequence[HistoryEntry]) -> bool:
    """Whether the command of the step that was rejected had been published again, or was taken over
    from whoever had it, before that."""
    for entry in history:
        data = entry.data
        if data.get("step") != REJECTED or data.get("phase") != "action":
            continue
        if entry.type == "AttemptRepublished":
            return True
        if entry.type == "AttemptClaimed" and data["delivery"] > 1:
            return True
    return False


def expected(orders: dict[UUID, bool], doubted: set[UUID]) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for task, fails in orders.items():
        done = ("cut", "glue") if fails else ("cut", "glue", REJECTED)
        found.update((str(task), step, "made") for step in done)
        if fails:
            undone = (*done, REJECTED) if task in doubted else done
            found.update((str(task), step, "unmade") for step in undone)
    return found


def test_a_version_is_kept() -> None:
    assert KEPT, "write one: PYTHONPATH=tests python tests/upgrades/record.py"
