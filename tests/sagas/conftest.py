"""Makes the corpus, the laws and the search importable here, and reports what they went through."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

COUNTS = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COUNTS] = []


@pytest.fixture
def report(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are shown at the end of the run."""
    return request.config.stash[COUNTS]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = config.stash.get(COUNTS, [])
    if lines:
        terminalreporter.section("laws of the saga machine")
        for line in lines:
            terminalreporter.write_line(line)
