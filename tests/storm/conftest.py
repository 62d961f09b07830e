"""A system to bring storms over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harness.services import RunningNats
from harness.system import System, system_at


@pytest.fixture
async def system(
    nats_server: RunningNats, postgres_url: str, tmp_path: Path
) -> AsyncIterator[System]:
    async with system_at(nats_server, postgres_url, tmp_path) as system:
        yield system
