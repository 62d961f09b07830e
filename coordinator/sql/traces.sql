-- Spans that are owed, and what they are made from. Times are milliseconds since 1970 (bigint).

-- name: claim_spans
-- Take at most $3 tasks whose spans are due, for `$2` ms: if this coordinator dies, a peer sends them.
UPDATE headway.owed_spans AS o
SET due_at = to_timestamp(($1::bigint + $2::bigint) / 1000.0)
FROM (
    SELECT task_id
    FROM headway.owed_spans
    WHERE version > sent AND due_at <= to_timestamp($1::bigint / 1000.0)
    ORDER BY due_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) AS due
WHERE o.task_id = due.task_id
RETURNING o.task_id, o.version, o.sent;

-- name: span_tasks
-- Whose spans are owed, without their states.
SELECT id, saga, saga_version, status, parent IS NOT NULL AS is_child, input_digest, trace
FROM headway.tasks
WHERE id = ANY($1::uuid[]);

-- name: span_histories
-- The events of these tasks up to these versions, but for signs of life, which are no news.
SELECT e.task_id, e.version, e.type, e.at, e.data
FROM unnest($1::uuid[], $2::integer[]) AS w (task_id, version)
JOIN headway.task_events AS e ON e.task_id = w.task_id AND e.version <= w.version
WHERE e.type <> 'AttemptHeartbeat'
ORDER BY e.task_id, e.version;

-- name: span_journals
-- The calls in these tasks' journals, with their values if $2.
SELECT j.task_id, j.step, j.phase, j.kind, j.key, j.tool, j.at, j.meta,
       CASE WHEN $2::boolean THEN j.data END AS data
FROM headway.journal_entries AS j
WHERE j.task_id = ANY($1::uuid[]) AND j.kind IN ('intent', 'result', 'failure', 'void')
ORDER BY j.task_id, j.step, j.phase, j.seq;

-- name: spans_sent
-- $1-$3 tasks, the versions up to which their spans are confirmed, and whether they had ended. Rows
-- are locked in id order, as commits lock them.
WITH locked AS (
    SELECT o.task_id, s.version, s.ended AND o.version <= s.version AS over
    FROM unnest($1::uuid[], $2::integer[], $3::boolean[]) AS s (task_id, version, ended)
    JOIN headway.owed_spans AS o ON o.task_id = s.task_id
    ORDER BY o.task_id
    FOR UPDATE OF o
),

gone AS (
    DELETE FROM headway.owed_spans AS o
    USING locked AS l
    WHERE o.task_id = l.task_id AND l.over
)

UPDATE headway.owed_spans AS o
SET sent = l.version
FROM locked AS l
WHERE o.task_id = l.task_id AND NOT l.over;

-- name: drop_spans
-- Give up what was owed for longer than $2 ms: at most $3, told by number.
WITH given_up AS (
    DELETE FROM headway.owed_spans
    WHERE task_id IN (
        SELECT task_id
        FROM headway.owed_spans
        WHERE version > sent AND since < to_timestamp(($1::bigint - $2::bigint) / 1000.0)
        LIMIT $3
        FOR UPDATE SKIP LOCKED
    )
    RETURNING 1
)

SELECT count(*) AS count FROM given_up;
