"""The laws that must hold of the coordinators' database, asked by SQL."""

from __future__ import annotations

from typing import Any

import asyncpg
from chaos.claims import Finding, Told
from harness.audit import audit as audit_of_histories
from headway.sagas import codec

TASKS = "SELECT id, saga, status, version, state FROM headway.tasks"

LAWS = {
    "a task without a timer that waits for nobody": """
        SELECT id::text AS subject FROM headway.tasks
        WHERE due_at IS NULL
          AND status NOT IN ('succeeded', 'compensated', 'parked', 'failed_to_compensate')
    """,
    "an end that was not the last word": """
        SELECT later.task_id::text || ' ' || later.type AS subject
        FROM headway.task_events AS ended
        JOIN headway.task_events AS later USING (task_id)
        WHERE ended.type IN ('TaskSucceeded', 'TaskCompensated')
          AND later.version > ended.version
          AND later.type NOT IN ('LateSuccess')
    """,
    "a task with two ends": """
        SELECT task_id::text AS subject FROM headway.task_events
        WHERE type IN ('TaskSucceeded', 'TaskCompensated')
        GROUP BY task_id HAVING count(*) > 1
    """,
    "an attempt dispatched twice": """
        SELECT task_id::text || ' ' || (data ->> 'step') AS subject FROM headway.task_events
        WHERE type = 'AttemptDispatched'
        GROUP BY task_id, data ->> 'step', data ->> 'phase', data ->> 'attempt'
        HAVING count(*) > 1
    """,
    "a step completed twice": """
        SELECT task_id::text || ' ' || (data ->> 'step') AS subject FROM headway.task_events
        WHERE type IN ('StepCompleted', 'StepCompensated')
        GROUP BY task_id, type, data ->> 'step' HAVING count(*) > 1
    """,
    "a journal with a gap": """
        SELECT j.task_id::text || ' ' || j.step AS subject
        FROM headway.journals AS j
        LEFT JOIN headway.journal_entries AS e USING (task_id, step, phase)
        GROUP BY j.task_id, j.step, j.phase, j.seq
        HAVING count(e.seq) <> j.seq OR coalesce(max(e.seq), 0) <> j.seq
    """,
    "a call with two results": """
        SELECT task_id::text || ' ' || key AS subject FROM headway.journal_entries
        WHERE kind = 'result'
        GROUP BY task_id, step, phase, key HAVING count(*) > 1
    """,
    "a result of a call that was not announced": """
        SELECT r.task_id::text || ' ' || r.key AS subject FROM headway.journal_entries AS r
        WHERE r.kind IN ('result', 'failure') AND r.key <> '' AND NOT EXISTS (
            SELECT FROM headway.journal_entries AS i
            WHERE (i.task_id, i.step, i.phase, i.key) = (r.task_id, r.step, r.phase, r.key)
              AND i.kind = 'intent' AND i.seq < r.seq
        )
    """,
    "a call left open in a task that succeeded": """
        SELECT j.task_id::text || ' ' || j.step AS subject
        FROM headway.journals AS j JOIN headway.tasks AS t ON t.id = j.task_id
        WHERE t.status = 'succeeded' AND j.unsettled::text <> '{}'
    """,
}


async def told(postgres_url: str) -> list[Told]:
    """What the database says of every task."""
    rows = await _fetch(postgres_url, TASKS)
    return [_told(row) for row in rows]


async def broken_laws(postgres_url: str) -> list[Finding]:
    """By SQL, and by folding every history once more."""
    found = [
        Finding("law", row["subject"], law)
        for law, statement in LAWS.items()
        for row in await _fetch(postgres_url, statement)
    ]
    try:
        await audit_of_histories(postgres_url)
    except AssertionError as wrong:
        found.append(Finding("law", "histories", str(wrong)[:2_000]))
    return found


async def _fetch(postgres_url: str, statement: str) -> list[Any]:
    connection = await asyncpg.connect(postgres_url)
    try:
        return list(await connection.fetch(statement))
    finally:
        await connection.close()


def _told(row: Any) -> Told:
    task = codec.decode_task(row["status"], row["version"], row["state"])
    steps = {name: str(step.status) for name, step in task.steps.items()}
    return Told(str(row["id"]), row["saga"], row["status"], task.reason, steps)
