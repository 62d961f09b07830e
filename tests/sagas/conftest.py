"""Makes the corpus, the laws and the search importable here, and shows what was searched."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

SEARCHED = pytest.StashKey[list[tuple[str, int, int, int]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SEARCHED] = []


@pytest.fixture
def searched(request: pytest.FixtureRequest) -> list[tuple[str, int, int, int]]:
    """Each search so far: of what, its states, its transitions, and the laws that held."""
    return request.config.stash[SEARCHED]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    searches = config.stash.get(SEARCHED, [])
    if not searches:
        return
    terminalreporter.section("laws of the saga machine")
    for name, states, transitions, _ in searches:
        terminalreporter.write_line(f"{name:32} {states:>8} states {transitions:>10} transitions")
    states, transitions = (
        sum(search[1] for search in searches),
        sum(search[2] for search in searches),
    )
    laws = min(search[3] for search in searches)
    terminalreporter.write_line(
        f"{len(searches)} searches, {states} states, {transitions} transitions enumerated: "
        f"{laws} laws held after each"
    )
