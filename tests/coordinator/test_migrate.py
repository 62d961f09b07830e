"""Migrations: applied once, in order, refused when they do not fit."""

from __future__ import annotations

import asyncio
import re

import asyncpg
import pytest
from headway.coordinator import migrate as migrations_module
from headway.coordinator.errors import SchemaMismatch
from headway.coordinator.migrate import Migration, migrate, migrations
from headway.coordinator.queries import QUERIES
from headway.coordinator.store import Store


async def connect(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(url)


async def test_a_fresh_database_gets_every_migration_and_a_second_run_none(postgres_url):
    connection = await connect(postgres_url)
    assert await migrate(connection) == len(migrations())
    assert await migrate(connection) == 0
    await connection.close()


async def test_coordinators_that_start_together_migrate_once(postgres_url):
    stores = [Store(postgres_url) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    rows = await stores[0].fetch("list_sagas")
    assert rows == []
    for store in stores:
        await store.close()


async def test_disk_data_of_an_older_version_is_brought_up_to_date_and_keeps_its_rows(
    postgres_url, monkeypatch
):
    connection = await connect(postgres_url)
    await migrate(connection)
    await connection.execute("INSERT INTO headway.sagas VALUES ('old', 1, 'digest', '{}', now())")
    shipped = migrations()
    newer = Migration(
        shipped[-1].number + 1,
        "9999_newer.sql",
        "ALTER TABLE headway.sagas ADD COLUMN note text NOT NULL DEFAULT 'kept'",
    )
    monkeypatch.setattr(migrations_module, "migrations", lambda: [*shipped, newer])
    assert await migrate(connection) == 1
    assert await connection.fetchval("SELECT note FROM headway.sagas") == "kept"
    await connection.close()


async def test_a_migration_that_fails_leaves_nothing_half_done(postgres_url, monkeypatch):
    connection = await connect(postgres_url)
    await migrate(connection)
    shipped = migrations()
    broken = Migration(
        shipped[-1].number + 1, "9999_broken.sql", "CREATE TABLE headway.half (); SELECT 1/0"
    )
    monkeypatch.setattr(migrations_module, "migrations", lambda: [*shipped, broken])
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(connection)
    assert await connection.fetchval("SELECT to_regclass('headway.half')") is None
    await connection.close()


async def test_a_newer_database_is_refused_with_what_to_do(postgres_url):
    connection = await connect(postgres_url)
    await migrate(connection)
    await connection.execute(
        "INSERT INTO headway_migrations (number, name, checksum) VALUES (9999, '9999_x.sql', 'x')"
    )
    with pytest.raises(SchemaMismatch, match=r"9999_x\.sql.*upgrade Headway"):
        await migrate(connection)
    await connection.close()


async def test_an_edited_migration_is_refused(postgres_url):
    connection = await connect(postgres_url)
    await migrate(connection)
    await connection.execute("UPDATE headway_migrations SET checksum = 'edited'")
    with pytest.raises(SchemaMismatch, match="differs from the one applied"):
        await migrate(connection)
    await connection.close()


def test_migration_files_are_numbered_without_gaps():
    shipped = migrations()
    assert [m.number for m in shipped] == list(range(1, len(shipped) + 1))
    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", m.name) for m in shipped)


async def test_every_named_statement_prepares_against_the_schema(postgres_url):
    connection = await connect(postgres_url)
    await migrate(connection)
    for name, statement in QUERIES.items():
        try:
            await connection.prepare(statement)
        except asyncpg.PostgresError as error:
            pytest.fail(f"{name}: {error}")
    await connection.close()


async def test_history_partitions_hold_the_ids_of_their_month(postgres_url):
    connection = await connect(postgres_url)
    await migrate(connection)
    made = await connection.fetchval(
        "SELECT headway.ensure_history_partitions('2026-11-29 10:00+00', 2)"
    )
    assert made == 3
    again = await connection.fetchval(
        "SELECT headway.ensure_history_partitions('2026-12-31 23:59+00', 1)"
    )
    assert again == 0  # December and January are there already
    for moment, partition in (
        ("2026-11-30 23:59:59.999+00", "task_events_2026_11"),
        ("2026-12-01 00:00+00", "task_events_2026_12"),
        ("2027-01-15 00:00+00", "task_events_2027_01"),
        ("2020-01-01 00:00+00", "task_events_other"),
    ):
        row = await connection.fetchrow(
            "INSERT INTO headway.task_events VALUES"
            f" (headway.uuid7_floor('{moment}'), 1, 'TaskSubmitted', now(), '{{}}')"
            " RETURNING tableoid::regclass::text AS partition"
        )
        assert row["partition"].removeprefix("headway.") == partition
    await connection.close()
