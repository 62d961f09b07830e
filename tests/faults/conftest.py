"""A system to be harmed, and a table of how long it took to go on after each fault."""

from __future__ import annotations

import random
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from harness import findings
from harness.services import RunningNats, RunningPostgres
from harness.system import System, system_at
from headway.coordinator import streams

SHORT_ACK_WAIT_S = 0.6
HEADROOM = 1.5  # on a bound, for two noisy cores
NOISE_S = 0.5

KIND = "measured"

Measured = Callable[[str, float, float], None]


@pytest.fixture
async def own_system(
    nats_server: RunningNats, postgres_server: RunningPostgres, tmp_path: Path
) -> AsyncIterator[System]:
    """As `system`, on a PostgreSQL that the test may harm."""
    async with system_at(nats_server, postgres_server.url, tmp_path) as system:
        yield system


@pytest.fixture
def short_ack_wait(monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds after which a silent message comes again, for coordinators in this process."""
    monkeypatch.setattr(streams, "ACK_WAIT_S", SHORT_ACK_WAIT_S)
    return SHORT_ACK_WAIT_S


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Measured:
    """Note how many seconds after a fault the work went on; fails if over the bound."""

    def note(fault: str, seconds: float, bound_s: float) -> None:
        findings.note(request, KIND, (fault, seconds, bound_s))
        assert seconds <= bound_s * HEADROOM + NOISE_S, f"{fault}: {seconds:.2f} s, not {bound_s} s"

    return note


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed of {request.node.name}: {seed}\n")
    return random.Random(seed)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    measured = list(findings.findings(terminalreporter, KIND))
    if not measured:
        return
    terminalreporter.section(
        "seconds from a fault to the work going on (tests allow 1.5 x the bound + 0.5 s)"
    )
    for fault, seconds, bound_s in measured:
        terminalreporter.write_line(f"{fault:<68} {seconds:6.2f}   bound {bound_s:g}")
