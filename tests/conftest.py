"""Fixtures that every test may use: real servers, fresh for each test.

- `postgres_url`: a fresh empty database, on one PostgreSQL for the whole run.
- `postgres_server`: a PostgreSQL of the test's own, for tests that kill or restart it.
- `nats_url`, `nats_server`: a fresh nats-server with JetStream; the same server in both.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from harness.findings import findings
from harness.services import RunningNats, RunningPostgres, nats_in, postgres_in


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """What a test printed may hold half a character; a report that travels may not."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "replace").decode()) for name, text in report.sections
    ]
    return report


RELAXED = {"fsync": "off", "full_page_writes": "off"}
"""For the shared PostgreSQL, which outlives killed processes all the same, if not power cuts."""


@pytest.fixture(scope="session")
def shared_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPostgres]:
    directory = tmp_path_factory.mktemp("shared")
    postgres = postgres_in(directory / "postgres", RELAXED)
    asyncio.run(postgres.start())
    yield postgres
    asyncio.run(postgres.stop())
    shutil.rmtree(directory)


@pytest.fixture
async def postgres_url(shared_postgres: RunningPostgres) -> AsyncIterator[str]:
    database = await shared_postgres.create_database()
    yield shared_postgres.server.url_of(database)
    await shared_postgres.drop_database(database)


@pytest.fixture
async def postgres_server(tmp_path: Path) -> AsyncIterator[RunningPostgres]:
    postgres = postgres_in(tmp_path / "postgres")
    await postgres.start()
    yield postgres
    await postgres.stop()
    shutil.rmtree(tmp_path / "postgres")


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[RunningNats]:
    nats = nats_in(tmp_path / "nats")
    await nats.start()
    yield nats
    await nats.kill()
    shutil.rmtree(tmp_path / "nats")


@pytest.fixture
def nats_url(nats_server: RunningNats) -> str:
    return nats_server.url


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for sizes in findings(terminalreporter, "sizes"):
        terminalreporter.write_line("lines of Python: " + "  ".join(sizes))
