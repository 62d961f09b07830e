"""A connection of our own to the test's nats-server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from headway.agents.connection import Connection, connect


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with await connect(nats_url, name="test") as connection:
        yield connection
