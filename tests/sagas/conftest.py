"""Makes the corpus, the laws and the search importable here, and shows what was searched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.findings import findings, note

sys.path.insert(0, str(Path(__file__).parent))

KIND = "searched"

Searched = Callable[[str, int, int, int], None]


@pytest.fixture
def searched(request: pytest.FixtureRequest) -> Searched:
    """Note a search: of what, its states, its transitions, and the laws that held."""

    def noted(shape: str, states: int, transitions: int, laws: int) -> None:
        note(request, KIND, (shape, states, transitions, laws))

    return noted


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    searches = list(findings(terminalreporter, KIND))
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
