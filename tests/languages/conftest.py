"""The conformance table of the agents that were tested, at the end of the run."""

from __future__ import annotations

import pytest
from harness.findings import findings

KIND = "conformance"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = list(findings(terminalreporter, KIND))
    if not rows:
        return
    terminalreporter.section("what each agent does of the agent contract")
    for cells in rows:
        check, level, *verdicts = map(str, cells)
        told = "".join(f"{verdict:12}" for verdict in verdicts)
        terminalreporter.write_line(f"{check:22}{level:8}{told}")
