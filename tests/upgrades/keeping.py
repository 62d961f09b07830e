"""A database as one file: which migrations it has, and every row of every table.

about.json          the version that wrote it, when, its migrations with their checksums
<table>.csv         as COPY writes it, with a header
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import orjson
from headway.coordinator.migrate import migrations

MARKS = "public.headway_migrations"

_TABLES = """
SELECT c.relname AS name
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'headway' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
_COLUMNS = """
SELECT a.attname AS name
FROM pg_attribute AS a
WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attgenerated = ''
ORDER BY a.attnum
"""
_SEQUENCES = """
SELECT sequencename AS name, last_value FROM pg_sequences
WHERE schemaname = 'headway' AND last_value IS NOT NULL
"""


@dataclass(frozen=True)
class Kept:
    """A kept database."""

    about: dict[str, Any]
    tables: dict[str, bytes]

    @property
    def written_at(self) -> datetime:
        return datetime.fromisoformat(self.about["written_at"])


async def keep(connection: asyncpg.Connection, about: dict[str, Any], file: Path) -> None:
    """Write everything that the database holds into `file`."""
    marks = await connection.fetch(f"SELECT number, name, checksum FROM {MARKS} ORDER BY number")
    last = {row["name"]: row["last_value"] for row in await connection.fetch(_SEQUENCES)}
    whole = {**about, "migrations": [dict(mark) for mark in marks], "sequences": last}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as kept:
        kept.writestr("about.json", orjson.dumps(whole, option=orjson.OPT_INDENT_2))
        for row in await connection.fetch(_TABLES):
            columns = ", ".join(await _columns(connection, row["name"]))
            text = io.BytesIO()
            query = f'SELECT {columns} FROM headway."{row["name"]}"'
            await connection.copy_from_query(query, output=text, format="csv", header=True)
            kept.writestr(f"{row['name']}.csv", text.getvalue())


def read(file: Path) -> Kept:
    with zipfile.ZipFile(file) as kept:
        names = [name for name in kept.namelist() if name.endswith(".csv")]
        tables = {name.removesuffix(".csv"): kept.read(name) for name in names}
        return Kept(orjson.loads(kept.read("about.json")), tables)


async def restore(connection: asyncpg.Connection, kept: Kept) -> None:
    """Make an empty database what the kept one was: its migrations, then its rows."""
    await _migrate(connection, kept)
    for of in ("history", "journal", "gate"):
        await connection.execute(f"SELECT headway.ensure_{of}_partitions($1, 2)", kept.written_at)
    async with connection.transaction():
        # Rows come table by table, so what they refer to may come later.
        await connection.execute("SET LOCAL session_replication_role = replica")
        for table, text in kept.tables.items():
            await connection.execute(f'DELETE FROM headway."{table}"')  # that its migration made
            header = text.partition(b"\n")[0].decode()
            await connection.copy_to_table(
                table,
                schema_name="headway",
                source=io.BytesIO(text),
                format="csv",
                header=True,
                columns=[column.strip('"') for column in header.split(",")],
            )
        for name, last in kept.about["sequences"].items():
            await connection.execute(f"SELECT setval('headway.{name}', {last})")


async def _migrate(connection: asyncpg.Connection, kept: Kept) -> None:
    """Apply the migrations that the kept database has; they must be what they were then."""
    shipped = {migration.number: migration for migration in migrations()}
    await connection.execute(
        f"CREATE TABLE {MARKS} (number integer PRIMARY KEY, name text NOT NULL, checksum text "
        "NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
    for mark in kept.about["migrations"]:
        migration = shipped[mark["number"]]
        assert migration.checksum == mark["checksum"], (
            f"{migration.name} was shipped and has been edited since: databases that have it "
            "would be refused. Undo the edit; what is to be changed goes into a new migration"
        )
        async with connection.transaction():
            await connection.execute(migration.body)
            await connection.execute(
                f"INSERT INTO {MARKS} (number, name, checksum) VALUES ($1, $2, $3)",
                migration.number,
                migration.name,
                migration.checksum,
            )


async def _columns(connection: asyncpg.Connection, table: str) -> list[str]:
    rows = await connection.fetch(_COLUMNS, f'headway."{table}"')
    return [f'"{row["name"]}"' for row in rows]
