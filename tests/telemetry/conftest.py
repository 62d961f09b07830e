"""A system whose telemetry is collected in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import findings
from harness.collector import Collector, collecting
from headway.coordinator import telemetry


@pytest.fixture(autouse=True)
def swift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coordinators do not wait long for more spans, and those of this process stop once all are
    sent, however slow the machine."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
    monkeypatch.setattr(telemetry, "END_S", 10.0)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """What this process, and those that it starts, send."""
    with collecting() as collector:
        for name, value in collector.variables(OTEL_METRIC_EXPORT_INTERVAL="300").items():
            monkeypatch.setenv(name, value)
        yield collector


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for [picture] in findings.findings(terminalreporter, "span tree"):
        terminalreporter.section("a task that was killed twice, as its collector sees it")
        terminalreporter.write_line(picture)
