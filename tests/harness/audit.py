"""What must hold of a database once faults have stopped: read by SQL, folded by the machine."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

import asyncpg
from headway.sagas import codec
from headway.sagas.definition import Definition
from headway.sagas.invariants import violations
from headway.sagas.plan import planned
from headway.sagas.replay import replay
from headway.sagas.task import ENDED, PARKED

SETTLED = {str(status) for status in (*ENDED, *PARKED)}


async def audit(postgres_url: str) -> Counter[str]:
    """Check every task, and count them by status: each is ended or parked, and `fold_all` finds
    nothing wrong."""
    statuses, wrong = await _folded(postgres_url)
    unsettled = {status: count for status, count in statuses.items() if status not in SETTLED}
    assert unsettled == {}, "\n".join(await _unsettled(postgres_url))
    assert wrong == [], "\n".join(wrong[:20])
    return statuses


async def fold_all(postgres_url: str) -> list[str]:
    """What is wrong with any task, ended or not: its history has a gap, folds to another state
    than the stored one, or nobody could be in that state."""
    return (await _folded(postgres_url))[1]


async def _unsettled(postgres_url: str) -> list[str]:
    connection = await asyncpg.connect(postgres_url)
    try:
        rows = await connection.fetch(
            "SELECT id, status, version, state FROM headway.tasks"
            " WHERE NOT status = ANY($1::text[]) LIMIT 20",
            sorted(SETTLED),
        )
    finally:
        await connection.close()
    return [
        f"task {row['id']}: is {row['status']} at version {row['version']}: {row['state']}"
        for row in rows
    ]


async def _folded(postgres_url: str) -> tuple[Counter[str], list[str]]:
    connection = await asyncpg.connect(postgres_url)
    try:
        definitions = {
            (row["name"], row["version"]): Definition.from_json(row["body"].encode())
            for row in await connection.fetch("SELECT name, version, body FROM headway.sagas")
        }
        tasks = await connection.fetch(
            "SELECT id, saga, saga_version, status, version, state FROM headway.tasks ORDER BY id"
        )
        events = await connection.fetch(
            "SELECT task_id, version, type, (extract(epoch FROM at) * 1000)::bigint AS at, data"
            " FROM headway.task_events ORDER BY task_id, version"
        )
    finally:
        await connection.close()
    histories = {task: list(rows) for task, rows in groupby(events, lambda row: row["task_id"])}
    assert histories.keys() == {row["id"] for row in tasks}
    wrong = [
        f"task {row['id']}: {what}"
        for row in tasks
        for what in _wrong(row, histories[row["id"]], definitions[row["saga"], row["saga_version"]])
    ]
    return Counter(row["status"] for row in tasks), wrong


def _wrong(row: Any, history: list[Any], definition: Definition) -> list[str]:
    found = []
    if [event["version"] for event in history] != list(range(1, row["version"] + 1)):
        found.append(f"its history of {len(history)} has a gap below version {row['version']}")
    stored = codec.decode_task(row["status"], row["version"], row["state"])
    folded = replay(
        definition,
        [codec.decode_event(event["type"], event["at"], event["data"]) for event in history],
    )
    if codec.encode_task(folded) != codec.encode_task(stored) or folded.status != stored.status:
        found.append(f"its history folds to another state: {folded} instead of {stored}")
    return found + violations(planned(definition, stored.beside.plan), stored)


async def events_of_type(postgres_url: str, *types: str) -> list[Any]:
    """All history rows of these types."""
    connection = await asyncpg.connect(postgres_url)
    try:
        return await connection.fetch(
            "SELECT task_id, version, type, data FROM headway.task_events"
            " WHERE type = ANY($1::text[]) ORDER BY task_id, version",
            list(types),
        )
    finally:
        await connection.close()
