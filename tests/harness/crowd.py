"""A database with very many tasks: copies of those that are there, as if handed in over a day."""

from __future__ import annotations

import asyncpg

FILL = """
INSERT INTO headway.tasks (id, created_at, updated_at, attributes, {columns})
SELECT (
           lpad(to_hex((extract(epoch FROM n.at) * 1000)::bigint), 12, '0')
           || '7' || substr(md5(n.number::text), 1, 3) || '8' || substr(md5(n.number::text), 4, 15)
       )::uuid,
       n.at, n.at + interval '1.3 s',
       jsonb_build_object('customer', (n.number % 500)::text), {columns}
FROM (
    SELECT number, now() - interval '1 minute' - number * interval '0.8 s' AS at
    FROM generate_series(1, {tasks}) AS number
) AS n
JOIN (
    SELECT DISTINCT ON (status) * FROM headway.tasks WHERE parent IS NULL
) AS t ON t.status = CASE
    WHEN n.number % 50 = 0 THEN 'parked' WHEN n.number % 11 = 0 THEN 'compensated'
    ELSE 'succeeded'
END
"""
HISTORIES = """
INSERT INTO headway.task_events (task_id, version, type, at, data)
SELECT c.id, e.version, e.type, c.created_at + (e.at - t.created_at), e.data
FROM (
    SELECT DISTINCT ON (status) id, status, created_at FROM headway.tasks
    WHERE parent IS NULL AND id IN (SELECT task_id FROM headway.task_events)
) AS t
JOIN headway.task_events AS e ON e.task_id = t.id
JOIN headway.tasks AS c ON c.status = t.status
    AND NOT EXISTS (SELECT FROM headway.task_events AS had WHERE had.task_id = c.id)
"""
OWN = ("id", "created_at", "updated_at", "attributes")  # of each copy


async def crowd(postgres_url: str, tasks: int, *, histories: bool = False) -> None:
    """Copy tasks that succeeded, are parked, or were compensated; there must be one of each. With
    `histories` they are whole, and it takes three times as long."""
    connection = await asyncpg.connect(postgres_url)
    try:
        rows = await connection.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'headway' "
            "AND table_name = 'tasks' AND is_generated = 'NEVER'"
        )
        columns = [row["column_name"] for row in rows if row["column_name"] not in OWN]
        await connection.execute(FILL.format(columns=", ".join(columns), tasks=tasks))
        if histories:
            await connection.execute(HISTORIES)
            await connection.execute("ANALYZE headway.task_events")
        await connection.execute("ANALYZE headway.tasks")
    finally:
        await connection.close()
