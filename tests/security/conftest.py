"""A system to be attacked, with tasks that need not end, and tokens for it.

The servers, the coordinator and the client are those of all tests of a file: each test uses ids
and names of its own. What it opens beside them (`mallory`, `owner`, tokens) ends with it.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from harness.actors import Actors
from harness.coordination import client_of, registered
from harness.downstream import Downstream
from harness.rights import granted
from harness.services import RunningNats, RunningPostgres, nats_in
from harness.shop import linear
from harness.system import System
from headway.agents.connection import Connection, connect
from headway.agents.credentials import Credentials
from headway.coordinator.app import Coordinator
from headway.coordinator.permissions import User
from headway.coordinator.token_making import TokenMaking, token_making
from pytest_asyncio import is_async_test
from security.attackers import Attacker, attacking


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of a file run on one loop, which is that of its servers and coordinator."""
    for item in items:
        if is_async_test(item) and item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture(scope="module")
def keys() -> tuple[Credentials, User]:
    return granted("mallory")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nats_server(
    tmp_path_factory: pytest.TempPathFactory, keys: tuple[Credentials, User]
) -> AsyncIterator[RunningNats]:
    folder = tmp_path_factory.mktemp("security")
    nats = nats_in(folder / "nats", [keys[1]])
    await nats.start()
    yield nats
    await nats.kill()
    shutil.rmtree(folder)


@pytest_asyncio.fixture(loop_scope="module")
async def mallory(
    nats_server: RunningNats, keys: tuple[Credentials, User]
) -> AsyncIterator[Attacker]:
    async with attacking(nats_server.url, keys[0]) as attacker:
        yield attacker


@pytest_asyncio.fixture(loop_scope="module")
async def owner(nats_server: RunningNats) -> AsyncIterator[Connection]:
    async with await connect(nats_server.url, name="owner") as connection:
        yield connection


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(
    nats_server: RunningNats,
    shared_postgres: RunningPostgres,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("system")
    downstream, actors = Downstream(folder / "downstream.sqlite"), Actors(folder)
    database = await shared_postgres.create_database()
    url = shared_postgres.server.url_of(database)
    async with client_of(nats_server.url) as client:
        yield System(nats_server, url, client, downstream, actors)
    await actors.end()
    downstream.close()
    await shared_postgres.drop_database(database)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(system: System) -> AsyncIterator[list[Coordinator]]:
    """A coordinator with the saga `linear`, before there are any tokens."""
    async with system.coordinating() as coordinators:
        await registered(system.client, linear())
        yield coordinators


@pytest_asyncio.fixture(loop_scope="module")
async def making(system: System, running: list[Coordinator]) -> AsyncIterator[TokenMaking]:
    """Tokens are made here, as `headway tokens` does it; there are none before and after."""
    async with token_making(system.postgres_url) as making:
        read_anew(running)
        yield making
    await system.fetch("DELETE FROM headway.tokens")
    read_anew(running)


def read_anew(coordinators: list[Coordinator]) -> None:
    """Have them know nothing of tokens, so that no test waits for what another left."""
    for coordinator in coordinators:
        coordinator._tokens._read_at = float("-inf")
