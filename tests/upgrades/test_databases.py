"""Databases that earlier versions wrote: each is read, folded and gone on with, for ever.

A fixture is written once by `record.py` and is never written again.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from harness.actors import Actors
from harness.audit import fold_all
from harness.coordination import client_of, working
from harness.eventually import eventually
from harness.office import Office
from harness.services import RunningPostgres
from headway.agents import Client, connect
from headway.coordinator.store import Store
from upgrades.keeping import Kept, read, restore
from upgrades.stories import STORIES, cancel
from upgrades.till import teller

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.zip"))
IN_TIME_S = 30.0


@dataclass
class Restored:
    """A kept database in a PostgreSQL of today."""

    kept: Kept
    url: str

    def tasks(self) -> dict[str, UUID]:
        return {story: UUID(task["id"]) for story, task in self.kept.about["tasks"].items()}


@pytest.fixture(params=FIXTURES, ids=lambda file: file.stem)
async def restored(
    request: pytest.FixtureRequest, shared_postgres: RunningPostgres
) -> AsyncIterator[Restored]:
    database = await shared_postgres.create_database()
    url = shared_postgres.server.url_of(database)
    kept = read(request.param)
    connection = await asyncpg.connect(url)
    try:
        await restore(connection, kept)
    finally:
        await connection.close()
    yield Restored(kept, url)
    await shared_postgres.drop_database(database)


def test_there_is_a_fixture_and_it_has_every_story_of_its_time() -> None:
    assert FIXTURES, "write one: PYTHONPATH=tests python tests/upgrades/record.py"
    told = {story for file in FIXTURES for story in read(file).about["tasks"]}
    assert told == set(STORIES)


async def test_every_task_is_read_as_it_was_and_its_history_folds_to_it(
    restored: Restored,
) -> None:
    connection = await asyncpg.connect(restored.url)
    store = Store(restored.url)
    try:
        for story, task in restored.kept.about["tasks"].items():
            row = await connection.fetchrow(
                "SELECT status, version, state::text FROM headway.tasks WHERE id = $1",
                UUID(task["id"]),
            )
            digest = hashlib.sha256(row["state"].encode()).hexdigest()
            found = {"status": row["status"], "version": row["version"], "digest": digest}
            assert found == {name: task[name] for name in found}, story
        await store.open()  # brings the schema up to date
        ids = [row["id"] for row in await connection.fetch("SELECT id FROM headway.tasks")]
        assert (await store.load(ids)).keys() == set(ids)
    finally:
        await connection.close()
        await store.close()
    assert await fold_all(restored.url) == []


async def test_every_task_goes_on_to_its_end(
    restored: Restored, nats_url: str, tmp_path: Path
) -> None:
    """The streams are empty: what was at an agent is published again from PostgreSQL."""
    actors, tasks = Actors(tmp_path), restored.tasks()
    urls = {"HEADWAY_NATS_URL": nats_url, "HEADWAY_POSTGRES_URL": restored.url}
    await actors.start("coordinator_process", **urls)
    try:
        async with client_of(nats_url) as client, await connect(nats_url, name="office") as desks:
            office = Office(desks)
            for task in tasks.values():
                office.log[task].append("before")  # so that no call is left open once more
            for child in await children(client, tasks):
                office.held[child].set()
            for story, task in tasks.items():
                if STORIES[story].goes_on is not cancel:
                    office.held[task].set()
            async with working(nats_url, *office.agents, teller, connection=desks):
                ends = {story: await go_on(client, story, task) for story, task in tasks.items()}
            bill = await client.documents.get("bills", "b-1")
    finally:
        await actors.end()
    assert ends == {story: STORIES[story].ends for story in tasks}
    assert (bill.version, bill.body) == (2, {"status": "paid", "total": 5})
    assert await fold_all(restored.url) == []


async def children(client: Client, tasks: dict[str, UUID]) -> list[UUID]:
    views = [await eventually(lambda task=task: client.status(task), 20) for task in tasks.values()]
    return [step.child for view in views for step in view.steps if step.child is not None]


async def go_on(client: Client, story: str, task: UUID) -> str:
    """Do what a person does in this story; how it ends."""
    told = STORIES[story]

    async def acted() -> bool:
        await told.goes_on(client, task)
        return True

    if told.kept in ("running", "parked", "failed_to_compensate"):
        await eventually(acted, IN_TIME_S, what=f"{story}: a person is heard")

    async def ended() -> bool:
        return (await client.status(task)).status == told.ends

    await eventually(ended, IN_TIME_S, what=f"{story} ends as {told.ends}")
    return told.ends
