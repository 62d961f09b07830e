"""One coordinator in this process, the office's agents and its sagas, for all tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio
from harness.coordination import client_of, coordinators, registered, working
from harness.eventually import eventually
from harness.office import Office, sagas
from harness.services import RunningNats, Servers
from headway.agents import Client, connect
from headway.agents.views import TaskView
from headway.coordinator.app import Coordinator
from headway.coordinator.token_making import TokenMaking, token_making
from pytest_asyncio import is_async_test

IN_TIME_S = 10.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of a file run on one loop, which is that of its servers and coordinator."""
    for item in items:
        if is_async_test(item) and item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@dataclass
class World:
    """`coordinator` and `office` run as long as this is there; `peers`, beside it, if some were
    started."""

    nats: RunningNats
    postgres_url: str
    client: Client
    office: Office
    coordinator: Coordinator
    peers: list[Coordinator] = field(default_factory=list)

    async def fetch(self, statement: str, *arguments: Any) -> Any:
        """The rows of an SQL statement."""
        connection = await asyncpg.connect(self.postgres_url)
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await connection.close()

    def forget_tokens(self) -> None:
        """Have all coordinators read the tokens anew."""
        for coordinator in (self.coordinator, *self.peers):
            coordinator._tokens._read_at = float("-inf")

    async def ended(self, task: UUID) -> TaskView:
        return await self.client.result(task, timeout=IN_TIME_S)

    async def parked(self, saga: str = "past", **options: Any) -> UUID:
        """A task that waits for a person: its last step failed past the point of no return."""
        receipt = await self.client.submit(saga, {"b": "reject"}, **options)
        assert (await self.ended(receipt.task)).status == "parked"
        return receipt.task

    async def held(self, saga: str = "plain", **options: Any) -> UUID:
        """A task whose first step goes on until it is not wanted any more."""
        receipt = await self.client.submit(saga, {"a": "hold"}, **options)
        await eventually(lambda: self.office.log[receipt.task], what="the step begins")
        return receipt.task


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(module_servers: Servers) -> AsyncIterator[World]:
    nats, url, _ = module_servers
    async with (
        coordinators(nats.url, url) as [coordinator],
        client_of(nats.url) as client,
        await connect(nats.url, name="office") as desks,
    ):
        office = Office(desks)
        for saga in sagas():
            await registered(client, saga)
        async with working(nats.url, *office.agents, connection=desks):
            yield World(nats, url, client, office, coordinator)


@pytest.fixture
def client(world: World) -> Client:
    return world.client


@pytest_asyncio.fixture(loop_scope="module")
async def making(world: World) -> AsyncIterator[TokenMaking]:
    """Tokens are made here, as `headway tokens` does it; there are none before and after."""
    async with token_making(world.postgres_url) as making:
        world.forget_tokens()
        yield making
    await world.fetch("DELETE FROM headway.tokens")
    world.forget_tokens()
