"""A system whose telemetry is collected in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from harness import findings
from harness.collector import Collector, collecting
from harness.services import RunningNats
from harness.system import System, system_at


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """What this process, and those that it starts, send."""
    with collecting() as collector:
        for name, value in collector.variables(OTEL_METRIC_EXPORT_INTERVAL="300").items():
            monkeypatch.setenv(name, value)
        yield collector


@pytest.fixture
async def system(
    nats_server: RunningNats, postgres_url: str, tmp_path: Path
) -> AsyncIterator[System]:
    async with system_at(nats_server, postgres_url, tmp_path) as system:
        yield system


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for [picture] in findings.findings(terminalreporter, "span tree"):
        terminalreporter.section("a task that was killed twice, as its collector sees it")
        terminalreporter.write_line(picture)
