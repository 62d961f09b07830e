"""A system to be attacked, with tasks that need not end, and tokens for it."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harness.actors import Actors
from harness.coordination import client_of, registered
from harness.downstream import Downstream
from harness.rights import granted
from harness.services import RunningNats, nats_in
from harness.shop import linear
from harness.system import System
from headway.agents.connection import Connection, connect
from headway.agents.credentials import Credentials
from headway.coordinator.app import Coordinator
from headway.coordinator.permissions import User
from headway.coordinator.token_making import TokenMaking, token_making
from security.attackers import Attacker, attacking


@pytest.fixture
def keys() -> tuple[Credentials, User]:
    return granted("mallory")


@pytest.fixture
async def nats_server(tmp_path: Path, keys: tuple[Credentials, User]) -> AsyncIterator[RunningNats]:
    nats = nats_in(tmp_path / "nats", [keys[1]])
    await nats.start()
    yield nats
    await nats.kill()
    shutil.rmtree(tmp_path / "nats")


@pytest.fixture
async def mallory(nats_url: str, keys: tuple[Credentials, User]) -> AsyncIterator[Attacker]:
    async with attacking(nats_url, keys[0]) as attacker:
        yield attacker


@pytest.fixture
async def owner(nats_url: str) -> AsyncIterator[Connection]:
    async with await connect(nats_url, name="owner") as connection:
        yield connection


@pytest.fixture
async def system(
    nats_server: RunningNats, postgres_url: str, tmp_path: Path
) -> AsyncIterator[System]:
    downstream, actors = Downstream(tmp_path / "downstream.sqlite"), Actors(tmp_path)
    async with client_of(nats_server.url) as client:
        yield System(nats_server, postgres_url, client, downstream, actors)
    await actors.end()
    downstream.close()


@pytest.fixture
async def running(system: System) -> AsyncIterator[list[Coordinator]]:
    """A coordinator with the saga `linear`, before there are any tokens."""
    async with system.coordinating() as coordinators:
        await registered(system.client, linear())
        yield coordinators


@pytest.fixture
async def making(postgres_url: str) -> AsyncIterator[TokenMaking]:
    """Tokens are made here, as `headway tokens` does it."""
    async with token_making(postgres_url) as making:
        yield making


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed of {request.node.name}: {seed}\n")
    return random.Random(seed)
