"""Checks of PostgreSQL. Needs the extra `coordinator`; changes nothing."""

from __future__ import annotations

import asyncio
import time

import asyncpg
from headway.cli.addresses import without_secret
from headway.cli.findings import Finding, clock, ok, wrong
from headway.coordinator.migrate import migrations

ANSWER_TIMEOUT_S = 5.0
POSTGRES_VERSION_MIN = 14


async def examine_postgres(url: str) -> list[Finding]:
    """Whether the server answers, and its version, schema and clock."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await _examine(url)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        found = f"{without_secret(url)}: {str(error) or 'no answer'}"
        return [wrong("PostgreSQL", found, "start the server, or correct the address")]


async def _examine(url: str) -> list[Finding]:
    connection = await asyncpg.connect(url)
    try:
        return [await _version(connection), await _schema(connection), await _clock(connection)]
    finally:
        connection.terminate()


async def _version(connection: asyncpg.Connection[asyncpg.Record]) -> Finding:
    found = f"PostgreSQL {await connection.fetchval('SHOW server_version')}"
    if connection.get_server_version().major >= POSTGRES_VERSION_MIN:
        return ok("PostgreSQL", found)
    remedy = f"upgrade it to {POSTGRES_VERSION_MIN} or later"
    return wrong("PostgreSQL", f"{found} is too old", remedy)


async def _schema(connection: asyncpg.Connection[asyncpg.Record]) -> Finding:
    shipped = {migration.number: migration.checksum for migration in migrations()}
    try:
        rows = await connection.fetch(
            "SELECT number, checksum FROM public.headway_migrations ORDER BY number"
        )
    except asyncpg.UndefinedTableError:
        return wrong("schema", "no tables yet", "start a coordinator, which makes them")
    applied = {row["number"]: row["checksum"] for row in rows}
    if applied == shipped:
        return ok("schema", f"version {max(applied, default=0)}")
    if any(applied[number] != shipped[number] for number in applied.keys() & shipped.keys()):
        return wrong("schema", "a migration was edited after it was applied", "reinstall Headway")
    found = f"version {max(applied, default=0)}, but this Headway has {max(shipped)}"
    if applied.keys() > shipped.keys():
        return wrong("schema", found, "upgrade Headway here")
    return wrong("schema", found, "restart a coordinator of this version, which migrates it")


async def _clock(connection: asyncpg.Connection[asyncpg.Record]) -> Finding:
    asked_at = time.time()
    told = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())")
    return clock("PostgreSQL", asked_at, float(told), time.time())
