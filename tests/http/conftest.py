"""A system that is served on HTTP, with a token of each role and an agent at work.

The servers, the coordinator, the worker and the tokens are those of all tests of a file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from harness.actors import Actors
from harness.coordination import client_of, coordinators, registered
from harness.downstream import Downstream
from harness.eventually import eventually
from harness.served import CONSOLE_TOKEN, Served
from harness.services import Servers
from harness.shop import linear
from harness.system import System
from headway.coordinator.roles import ROLES
from headway.coordinator.token_making import token_making
from pytest_asyncio import is_async_test


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of what is served run on one loop a file, which is that of its servers."""
    for item in items:
        own = item.path.parent == Path(__file__).parent and "served" in item.fixturenames
        if is_async_test(item) and own:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(module_servers: Servers) -> AsyncIterator[Served]:
    nats, url, folder = module_servers
    downstream, actors = Downstream(folder / "downstream.sqlite"), Actors(folder)
    face = {"http": "127.0.0.1:0", "console_token": CONSOLE_TOKEN}
    async with (
        client_of(nats.url) as client,
        coordinators(nats.url, url, **face) as running,
    ):
        system = System(nats, url, client, downstream, actors)
        await registered(client, linear())
        async with token_making(url) as making:
            tokens = {role: await making.create(f"a-{role}", role) for role in ROLES}
        client._token = tokens["operate"]
        async with system.working():
            yield Served(system, running[0], tokens)
    await actors.end()
    downstream.close()


@pytest_asyncio.fixture(loop_scope="module")
async def anybody(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    """Without a token."""
    async with httpx.AsyncClient(base_url=served.address, timeout=20) as client:
        await eventually(lambda: _is_ready(client), 20)
        yield client


async def _is_ready(client: httpx.AsyncClient) -> bool:
    return (await client.get("/readyz")).status_code == 200


@pytest_asyncio.fixture(loop_scope="module")
async def operator(served: Served, anybody: httpx.AsyncClient) -> httpx.AsyncClient:
    anybody.headers.update(served.shown("operate"))
    return anybody
