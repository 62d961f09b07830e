"""Fixtures that every test may use: real servers, fresh for each test.

- `postgres_url`: a fresh empty database, on one PostgreSQL for the whole run.
- `postgres_server`: a PostgreSQL of the test's own, for tests that kill or restart it.
- `nats_url`, `nats_server`: a fresh nats-server with JetStream; the same server in both.
- `system`: a system of real processes on these two, without any process yet.
- `module_servers`: a nats-server and a database for all tests of one module, on its loop.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from harness.findings import findings
from harness.services import RunningNats, RunningPostgres, Servers, nats_in, postgres_in
from harness.system import System, system_at

TESTS = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """What a test printed may hold half a character; a report that travels may not."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "replace").decode()) for name, text in report.sections
    ]
    return report


LONGEST = (
    "docs/test_guides.py",
    "sagas/test_laws.py",
    "storm/test_limits.py",
    "console/test_task_page.py",
    "test_packaging.py",
    "drills/test_drill.py",
    "storm/test_breakers.py",
    "chaos/test_short_run.py",
    "http/test_schema.py",
    "telemetry/test_traces.py",
    "test_readme.py",
    "cli/test_commands.py",
)
"""The files that take longest, where a worker that is handed one last keeps all others waiting."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hand out the longest files first."""
    turns = {TESTS / name: turn for turn, name in enumerate(LONGEST)}
    items.sort(key=lambda item: turns.get(item.path, len(turns)))


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


@pytest.fixture
async def system(
    nats_server: RunningNats, postgres_url: str, tmp_path: Path
) -> AsyncIterator[System]:
    async with system_at(nats_server, postgres_url, tmp_path) as system:
        yield system


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_servers(
    shared_postgres: RunningPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Servers]:
    folder = tmp_path_factory.mktemp("module")
    nats = nats_in(folder / "nats")
    await nats.start()
    database = await shared_postgres.create_database()
    yield Servers(nats, shared_postgres.server.url_of(database), folder)
    await nats.kill()
    await shared_postgres.drop_database(database)
    shutil.rmtree(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for sizes in findings(terminalreporter, "sizes"):
        terminalreporter.write_line("lines of Python: " + "  ".join(sizes))
