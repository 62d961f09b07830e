"""A data directory for each test without the second that making one takes."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from headway.coordinator.embedded import Embedded


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory as a first run leaves it."""
    data = tmp_path_factory.mktemp("made") / "data"

    async def run_once() -> None:
        async with Embedded(data, coordinators=0):
            pass

    asyncio.run(run_once())
    return data


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    """The test's own copy of it, at a path with a space."""
    copy = tmp_path / "my data"
    subprocess.run(["cp", "-a", made, copy], check=True)
    return copy
