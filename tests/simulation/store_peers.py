"""Statements of what coordinators know of each other, of streams, and of the server itself."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from simulation import store_values as v
from simulation.store_tables import Tables, reads, writes
from simulation.store_values import Row

MONTHS_AHEAD = 2


@reads
def stream_identities(tables: Tables) -> list[Row]:
    return [Row(name=name, created=created) for name, created in tables.streams.items()]


@writes
def save_stream_identity(tables: Tables, name: str, created: str) -> list[Row]:
    v.text(name, created)
    tables.streams[name] = created
    return []


@writes
def beat(tables: Tables, coordinator: UUID) -> list[Row]:
    v.uuid(coordinator)
    tables.coordinators[coordinator] = tables.clock()
    return []


@writes
def reap_silent(tables: Tables, silent_ms: int) -> list[Row]:
    v.bigint(silent_ms)
    oldest = tables.clock() - silent_ms
    silent = [each for each, seen_at in tables.coordinators.items() if seen_at < oldest]
    for each in silent:
        del tables.coordinators[each]
    return [Row(id=each) for each in silent]


@writes
def leave(tables: Tables, coordinator: UUID) -> list[Row]:
    v.uuid(coordinator)
    tables.coordinators.pop(coordinator, None)
    return []


@writes
def ensure_partitions(tables: Tables, at: int) -> list[Row]:
    return _ensure(tables, "task_events", at)


@writes
def ensure_journal_partitions(tables: Tables, at: int) -> list[Row]:
    return _ensure(tables, "journal_entries", at)


@writes
def ensure_gate_partitions(tables: Tables, at: int) -> list[Row]:
    return _ensure(tables, "gate_events", at)


@reads
def now(tables: Tables) -> list[Row]:
    return [Row(now=tables.clock(), version="simulated")]


def _ensure(tables: Tables, table: str, at: int) -> list[Row]:
    v.bigint(at)
    day = datetime.fromtimestamp(at / 1000, UTC)
    first = day.year * 12 + day.month - 1
    wanted = [f"{table}_{month}" for month in range(first, first + MONTHS_AHEAD + 1)]
    made = [name for name in wanted if name not in tables.partitions]
    tables.partitions.update(dict.fromkeys(made))
    return [Row(made=len(made))]
