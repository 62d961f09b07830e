-- Spans that are owed, and what they are made from. Times are milliseconds since 1970 (bigint).

-- name: adopt_spans
-- Take over what coordinators of an earlier release noted and have not under way.
WITH former AS (
    DELETE FROM headway.owed_spans
    WHERE version > sent AND due_at <= to_timestamp($1::bigint / 1000.0)
    RETURNING task_id, version, sent, since
)

INSERT INTO headway.span_debts (tasks, reads, versions, due_at, since)
SELECT ARRAY[task_id], ARRAY[sent], ARRAY[version], to_timestamp($1::bigint / 1000.0), since
FROM former;

-- name: claim_spans
-- Take at most $3 commits' debts for `$2` ms: if this coordinator dies, a peer sends those spans.
UPDATE headway.span_debts AS d
SET due_at = to_timestamp(($1::bigint + $2::bigint) / 1000.0)
FROM (
    SELECT id
    FROM headway.span_debts
    WHERE due_at <= to_timestamp($1::bigint / 1000.0)
    ORDER BY due_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) AS due
WHERE d.id = due.id
RETURNING d.id, d.tasks, d.reads, d.versions;

-- name: span_tasks
-- Whose spans are owed, without their states.
SELECT id, saga, saga_version, parent IS NOT NULL AS is_child, input_digest, trace, created_at
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
-- These debts are paid.
DELETE FROM headway.span_debts
WHERE id = ANY($1::bigint[]);

-- name: drop_spans
-- Give up what was owed for longer than $2 ms: at most $3 commits' debts, told by tasks.
WITH given_up AS (
    DELETE FROM headway.span_debts
    WHERE id IN (
        SELECT id
        FROM headway.span_debts
        WHERE since < to_timestamp(($1::bigint - $2::bigint) / 1000.0)
        LIMIT $3
        FOR UPDATE SKIP LOCKED
    )
    RETURNING cardinality(tasks) AS tasks
)

SELECT coalesce(sum(tasks), 0)::bigint AS count FROM given_up;
