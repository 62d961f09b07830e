"""Bring a database to this version's schema: numbered files, in order, under an advisory lock.

Always holds: each file is applied once, in a transaction of its own together with its row in
`headway_migrations`; a file that was edited after it was applied is refused by its checksum.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from importlib import resources

import asyncpg
from headway.coordinator.errors import SchemaMismatch

_LOG = logging.getLogger(__name__)
_LOCK = 0x68656164776179  # "headway", for pg_advisory_lock

_TABLE = """
CREATE TABLE IF NOT EXISTS public.headway_migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    body: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.body.encode()).hexdigest()


def migrations() -> list[Migration]:
    """The migrations that this version ships, in order."""
    folder = resources.files("headway.coordinator.sql.migrations")
    found = [
        Migration(int(file.name[:4]), file.name, file.read_text("utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    ]
    return sorted(found, key=lambda migration: migration.number)


async def migrate(connection: asyncpg.Connection[asyncpg.Record]) -> int:
    """Apply what is missing; returns how many files were. SchemaMismatch says what to do."""
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        await connection.execute(_TABLE)
        applied = await connection.fetch(
            "SELECT number, name, checksum FROM public.headway_migrations ORDER BY number"
        )
        shipped = migrations()
        _check(shipped, applied)
        missing = shipped[len(applied) :]
        for migration in missing:
            await _apply(connection, migration)
        return len(missing)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def _apply(connection: asyncpg.Connection[asyncpg.Record], migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(migration.body)
        await connection.execute(
            "INSERT INTO public.headway_migrations (number, name, checksum) VALUES ($1, $2, $3)",
            migration.number,
            migration.name,
            migration.checksum,
        )
    _LOG.info("applied migration %s", migration.name)


def _check(shipped: list[Migration], applied: list[asyncpg.Record]) -> None:
    if len(applied) > len(shipped):
        newest = applied[-1]["name"]
        raise SchemaMismatch(
            f"the database has migration {newest}, which this version does not know: "
            "upgrade Headway, or use another database"
        )
    for migration, row in zip(shipped, applied, strict=False):
        if (row["number"], row["checksum"]) != (migration.number, migration.checksum):
            raise SchemaMismatch(
                f"migration {row['name']} differs from the one applied to this database: "
                "this installation was edited; reinstall Headway"
            )
