"""Coordinators in the test's own process, and small agents and sagas to drive them with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from harness.eventually import eventually
from harness.rights import AGENTS, as_user, no_violations
from headway.agents import Agent, Client, Connection, Worker, connect
from headway.coordinator.app import Coordinator
from headway.coordinator.settings import Settings
from headway.sagas import Definition, Saga

STOP_S = 15.0


@asynccontextmanager
async def coordinators(
    nats_url: str, postgres_url: str, count: int = 1, **settings: Any
) -> AsyncIterator[list[Coordinator]]:
    """Run `count` coordinators until the block ends; a loop that fails fails the test."""
    stop = asyncio.Event()
    given = Settings(nats_url=nats_url, postgres_url=postgres_url, **settings)
    running = [Coordinator(given) for _ in range(count)]
    tasks = [asyncio.create_task(coordinator.run(stop)) for coordinator in running]
    try:
        yield running
    finally:
        stop.set()
        await asyncio.wait_for(asyncio.gather(*tasks), STOP_S)


@asynccontextmanager
async def client_of(nats_url: str) -> AsyncIterator[Client]:
    async with await Client.connect(nats_url) as client:
        yield client


@asynccontextmanager
async def working(
    nats_url: str, *agents: Agent, connection: Connection | None = None, **options: object
) -> AsyncIterator[list[Worker]]:
    """Run a worker for each agent, all on one connection, until the block ends; with the rights of
    agents, which must suffice."""
    mine = connection or await connect(as_user(nats_url, AGENTS), name="test-agents")
    stop = asyncio.Event()
    workers = [Worker(mine, agent, **options) for agent in agents]
    tasks = [asyncio.create_task(worker.run(stop)) for worker in workers]
    with no_violations():
        try:
            yield workers
        finally:
            stop.set()
            await asyncio.wait_for(asyncio.gather(*tasks), STOP_S)
            if connection is None:
                await mine.close()


async def registered(client: Client, saga: Saga) -> Definition:
    """Register a saga, waiting for a coordinator to be there."""
    definition = saga.define()
    await eventually(lambda: client.register(definition), 15, what="a coordinator answers")
    return definition
