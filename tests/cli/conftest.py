"""One `headway up` with one agent for all tests of the command line, used as a person would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_shell import Shell
from harness.corner_shop import open_shop


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A folder with a running `headway up`, the agent `shop`, and its sagas registered."""
    with open_shop(tmp_path_factory.mktemp("shop")) as shell:
        yield shell


@pytest.fixture
def elsewhere(tmp_path: Path) -> Shell:
    """An empty folder, in which nothing runs."""
    return Shell(tmp_path)
