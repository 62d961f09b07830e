"""One cluster under load for all tests of a module, since it takes seconds to come up."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from cluster.nodes import NODES, Cluster
from cluster.rounds import Site
from cluster.system import loaded_system
from harness.services import RunningPostgres


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    shared_postgres: RunningPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed of the cluster's faults: {seed}\n")
    rng, folder = random.Random(seed), tmp_path_factory.mktemp("cluster")
    database = await shared_postgres.create_database()
    cluster = Cluster(folder, rng)
    try:
        await cluster.start()
        url = shared_postgres.server.url_of(database)
        async with loaded_system(cluster.url, url, folder, replicas=len(NODES)) as system:
            yield Site(cluster, system, rng)
    finally:
        await asyncio.shield(cluster.end())
        await shared_postgres.drop_database(database)
