"""One truth, on PostgreSQL and simulated: each test that wants a `truth` runs on both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from conformance.truths import PostgresTruth, SimulatedTruth, Truth, template_database
from harness.services import RunningPostgres


@pytest.fixture(scope="session")
def template(shared_postgres: RunningPostgres) -> Iterator[str]:
    """A database with this version's schema, to make others from."""
    with template_database(shared_postgres) as name:
        yield name


@pytest.fixture(params=["postgresql", "simulated"])
async def truth(
    request: pytest.FixtureRequest, shared_postgres: RunningPostgres, template: str
) -> AsyncIterator[Truth]:
    if request.param == "simulated":
        yield SimulatedTruth()
        return
    made = await PostgresTruth.made(shared_postgres, template)
    yield made
    await made.drop()
