-- Every statement of the coordinator, by name. Times come in as parameters: milliseconds since
-- 1970 (bigint). `$n` are documented above each statement where their meaning is not plain.

-- name: load_tasks
-- The state of these tasks, fresh.
SELECT id, saga, saga_version, status, version, state, input, input_digest, created_at, updated_at,
       due_at, attributes, manifest, parent, owner, priority, trace
FROM headway.tasks
WHERE id = ANY($1::uuid[]);

-- name: owner_of_task
SELECT owner FROM headway.tasks WHERE id = $1::uuid;

-- name: latest_sagas
-- The newest version of these sagas.
SELECT name, max(version) AS version
FROM headway.sagas
WHERE name = ANY($1::text[])
GROUP BY name;

-- name: load_sagas
SELECT s.name, s.version, s.digest, s.body, s.registered_at
FROM headway.sagas AS s
JOIN unnest($1::text[], $2::integer[]) AS wanted (name, version)
    ON wanted.name = s.name AND wanted.version = s.version;

-- name: commit_batch
-- Change tasks whose version is still the one that was read, insert new ones, append history.
-- $1-$9 changed tasks: id, version read, new version, status, state, due (ms or null), at (ms),
-- whether it waits for a person, saga version; $10-$27 new tasks: id, saga, saga version, version,
-- status, state, due, at, input, input digest, attributes, whether the saga's version must be the
-- newest, manifest, parent, waits, owner, priority, trace; $28-$32 history: task, version, type, at,
-- data; $33-$36 whose spans are owed: task, version read, new version, and since when (ms); $37 how
-- many tasks there are. Columns that need no quoting come as array literals; see `literals`.
-- Rows are locked in id order, so that two batches cannot deadlock. Answers how many tasks went
-- through and, if some did not, which ones did.
WITH locked AS (
    SELECT c.id, c.version, c.status, c.state, c.due, c.at, c.waits, c.saga_version
    FROM unnest(
        $1::text::uuid[], $2::text::integer[], $3::text::integer[], $4::text::text[],
        $5::json[], $6::text::bigint[], $7::text::bigint[], $8::text::boolean[],
        $9::text::integer[]
    ) AS c (id, expected, version, status, state, due, at, waits, saga_version)
    JOIN headway.tasks AS k ON k.id = c.id AND k.version = c.expected
    ORDER BY c.id
    FOR UPDATE OF k
),

updated AS (
    UPDATE headway.tasks AS t
    SET version = l.version,
        status = l.status,
        state = l.state,
        due_at = to_timestamp(l.due / 1000.0),
        updated_at = to_timestamp(l.at / 1000.0),
        waits = l.waits,
        saga_version = l.saga_version
    FROM locked AS l
    WHERE t.id = l.id
    RETURNING t.id
),

inserted AS (
    INSERT INTO headway.tasks (
        id, saga, saga_version, version, status, state, due_at, created_at, updated_at,
        input, input_digest, attributes, manifest, parent, waits, owner,
        priority, trace
    )
    SELECT n.id, n.saga, n.saga_version, n.version, n.status, n.state,
           to_timestamp(n.due / 1000.0), to_timestamp(n.at / 1000.0), to_timestamp(n.at / 1000.0),
           n.input, n.input_digest, n.attributes, n.manifest, n.parent, n.waits, n.owner,
           n.priority, n.trace
    FROM unnest(
        $10::text::uuid[], $11::text[], $12::text::integer[], $13::text::integer[],
        $14::text::text[], $15::json[], $16::text::bigint[], $17::text::bigint[], $18::json[],
        $19::bytea[], $20::jsonb[], $21::text::boolean[], $22::json[], $23::json[],
        $24::text::boolean[], $25::text[], $26::text::smallint[], $27::text[]
    ) AS n (
        id, saga, saga_version, version, status, state, due, at, input, input_digest, attributes,
        newest, manifest, parent, waits, owner, priority, trace
    )
    WHERE NOT n.newest OR NOT EXISTS (
        SELECT FROM headway.sagas AS s WHERE s.name = n.saga AND s.version > n.saga_version
    )
    ORDER BY n.id
    ON CONFLICT DO NOTHING
    RETURNING id
),

committed AS (
    SELECT id FROM updated
    UNION ALL
    SELECT id FROM inserted
),

appended AS (
    INSERT INTO headway.task_events (task_id, version, type, at, data)
    SELECT h.task_id, h.version, h.type, to_timestamp(h.at / 1000.0), h.data
    FROM unnest(
        $28::text::uuid[], $29::text::integer[], $30::text::text[], $31::text::bigint[],
        $32::json[]
    ) AS h (task_id, version, type, at, data)
    WHERE (h.task_id IN (SELECT id FROM committed)) IS TRUE
),

owed AS (
    INSERT INTO headway.span_debts (tasks, reads, versions, due_at, since)
    SELECT array_agg(o.task_id), array_agg(o.read), array_agg(o.version),
           to_timestamp($36::bigint / 1000.0), to_timestamp($36::bigint / 1000.0)
    FROM unnest($33::text::uuid[], $34::text::integer[], $35::text::integer[])
        AS o (task_id, read, version)
    WHERE (o.task_id IN (SELECT id FROM committed)) IS TRUE
    HAVING count(*) > 0
)

SELECT count(*) AS went_through,
       CASE
           WHEN count(*) < $37::integer THEN array_agg(id)
       END AS ids
FROM committed;

-- name: commit_change
-- As commit_batch, for one task that is changed: half of what a small batch takes is its size.
-- $1-$9 as there, but values; $10-$13 its history: version, type, at, data
WITH updated AS (
    UPDATE headway.tasks
    SET version = $3::integer,
        status = $4::text,
        state = $5::json,
        due_at = to_timestamp($6::bigint / 1000.0),
        updated_at = to_timestamp($7::bigint / 1000.0),
        waits = $8::boolean,
        saga_version = $9::integer
    WHERE id = $1::uuid AND version = $2::integer
    RETURNING id
),

appended AS (
    INSERT INTO headway.task_events (task_id, version, type, at, data)
    SELECT u.id, h.version, h.type, to_timestamp(h.at / 1000.0), h.data
    FROM updated AS u,
        unnest($10::integer[], $11::text[], $12::bigint[], $13::json[])
            AS h (version, type, at, data)
)

SELECT count(*) AS went_through FROM updated;

-- name: commit_new
-- As commit_batch, for one new task. $1-$18 as new tasks are there, but values; $19-$22 its history:
-- version, type, at, data
WITH inserted AS (
    INSERT INTO headway.tasks (
        id, saga, saga_version, version, status, state, due_at, created_at, updated_at,
        input, input_digest, attributes, manifest, parent, waits, owner,
        priority, trace
    )
    SELECT $1::uuid, $2::text, $3::integer, $4::integer, $5::text, $6::json,
           to_timestamp($7::bigint / 1000.0), to_timestamp($8::bigint / 1000.0),
           to_timestamp($8::bigint / 1000.0), $9::json, $10::bytea, $11::jsonb, $13::json,
           $14::json, $15::boolean, $16::text, $17::smallint, $18::text
    WHERE NOT $12::boolean OR NOT EXISTS (
        SELECT FROM headway.sagas AS s WHERE s.name = $2::text AND s.version > $3::integer
    )
    ON CONFLICT DO NOTHING
    RETURNING id
),

appended AS (
    INSERT INTO headway.task_events (task_id, version, type, at, data)
    SELECT i.id, h.version, h.type, to_timestamp(h.at / 1000.0), h.data
    FROM inserted AS i,
        unnest($19::integer[], $20::text[], $21::bigint[], $22::json[])
            AS h (version, type, at, data)
)

SELECT count(*) AS went_through FROM inserted;

-- name: claim_due
-- Take the tasks whose timer went off, for `$2` ms: if this coordinator dies, a peer takes them then.
UPDATE headway.tasks AS t
SET due_at = to_timestamp(($1::bigint + $2::bigint) / 1000.0)
FROM (
    SELECT id
    FROM headway.tasks
    WHERE due_at <= to_timestamp($1::bigint / 1000.0)
    ORDER BY due_at
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) AS due
WHERE t.id = due.id
RETURNING t.id;

-- name: postpone
-- Put off the timers of tasks that have not changed since they were read. Rows are locked in id
-- order, as commits lock them.
WITH locked AS (
    SELECT t.id, p.due
    FROM unnest($1::uuid[], $2::integer[], $3::bigint[]) AS p (id, version, due)
    JOIN headway.tasks AS t ON t.id = p.id AND t.version = p.version
    WHERE t.due_at IS NOT NULL
    ORDER BY t.id
    FOR UPDATE OF t
)

UPDATE headway.tasks AS t
SET due_at = to_timestamp(l.due / 1000.0)
FROM locked AS l
WHERE t.id = l.id;

-- name: open_tasks
-- Tasks that wait for something, due before $3 (ms; null: all of them), after id $1, in id order.
SELECT id
FROM headway.tasks
WHERE id > $1::uuid
  AND status NOT IN ('succeeded', 'compensated')
  AND due_at <= coalesce(to_timestamp($3::bigint / 1000.0), 'infinity')
ORDER BY id
LIMIT $2;

-- name: register_saga
-- Insert unless the version exists; answers the digest that is stored.
WITH inserted AS (
    INSERT INTO headway.sagas (name, version, digest, body, registered_at)
    VALUES ($1, $2, $3, $4::json, to_timestamp($5::bigint / 1000.0))
    ON CONFLICT DO NOTHING
    RETURNING digest, registered_at
)

SELECT digest, registered_at FROM inserted
UNION ALL
SELECT digest, registered_at FROM headway.sagas WHERE name = $1 AND version = $2
LIMIT 1;

-- name: list_sagas
SELECT name, version, digest, body, registered_at FROM headway.sagas ORDER BY name, version;

-- name: history
-- A task's events after version $2, at most $3.
SELECT version, type, at, data
FROM headway.task_events
WHERE task_id = $1::uuid AND version > $2
ORDER BY version
LIMIT $3;

-- name: list_tasks
-- Newest first. $1 before this id, $2 statuses (empty: any), $3 saga, $4 attributes it must have,
-- $5 and $6 created after and before (UUIDv7 carries the time), $7 how many, $8 owner, $9 and $10
-- sagas and their versions (null: any).
SELECT id, saga, saga_version, status, version, headway.text_of(state, 'reason') AS reason,
       created_at, updated_at, owner
FROM headway.tasks
WHERE id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND (cardinality($2::text[]) = 0 OR status = ANY($2::text[]))
  AND ($3::text IS NULL OR saga = $3::text)
  AND ($4::jsonb = '{}'::jsonb OR attributes @> $4::jsonb)
  AND ($5::timestamptz IS NULL OR created_at >= $5::timestamptz)
  AND ($6::timestamptz IS NULL OR created_at < $6::timestamptz)
  AND ($8::text IS NULL OR owner = $8::text)
  AND (
        $9::text[] IS NULL
        OR (
            saga = ANY($9::text[])
            AND (saga, saga_version) IN (SELECT * FROM unnest($9::text[], $10::integer[]))
        )
    )
ORDER BY id DESC
LIMIT $7;

-- name: list_waiting_tasks
-- Tasks that wait for a person, newest first: $1 before this id, $2 saga, $3 how many, $4 owner,
-- $5 the one task.
SELECT id
FROM headway.tasks
WHERE waits
  AND id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND id >= coalesce($5::uuid, '00000000-0000-0000-0000-000000000000')
  AND id <= coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND ($2::text IS NULL OR saga = $2::text)
  AND ($4::text IS NULL OR owner = $4::text)
ORDER BY id DESC
LIMIT $3;

-- name: list_open_tasks
-- As `list_tasks`, for statuses that are not ended: served by the index of open tasks alone.
SELECT id, saga, saga_version, status, version, headway.text_of(state, 'reason') AS reason,
       created_at, updated_at, owner
FROM headway.tasks
WHERE id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND status NOT IN ('succeeded', 'compensated')
  AND status = ANY($2::text[])
  AND ($3::text IS NULL OR saga = $3::text)
  AND ($4::jsonb = '{}'::jsonb OR attributes @> $4::jsonb)
  AND ($5::timestamptz IS NULL OR created_at >= $5::timestamptz)
  AND ($6::timestamptz IS NULL OR created_at < $6::timestamptz)
  AND ($8::text IS NULL OR owner = $8::text)
  AND (
        $9::text[] IS NULL
        OR (
            saga = ANY($9::text[])
            AND (saga, saga_version) IN (SELECT * FROM unnest($9::text[], $10::integer[]))
        )
    )
ORDER BY id DESC
LIMIT $7;

-- name: count_by_saga
SELECT saga, saga_version, status, count(*) AS tasks
FROM headway.tasks
GROUP BY saga, saga_version, status;

-- name: stream_identities
SELECT name, created FROM headway.streams;

-- name: save_stream_identity
INSERT INTO headway.streams (name, created)
VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET created = excluded.created;

-- name: beat
-- Say that coordinator $1 lives.
INSERT INTO headway.coordinators (id, seen_at)
VALUES ($1::uuid, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at;

-- name: reap_silent
-- Forget coordinators that were silent for $1 ms; whoever gets the row looks after what they left.
DELETE FROM headway.coordinators
WHERE seen_at < clock_timestamp() - make_interval(secs => $1::bigint / 1000.0)
RETURNING id;

-- name: leave
-- Forget coordinator $1: it leaves in order, or is gone; whoever gets the row takes over from it.
DELETE FROM headway.coordinators WHERE id = $1::uuid RETURNING id;

-- name: ensure_partitions
SELECT headway.ensure_history_partitions(to_timestamp($1::bigint / 1000.0), 2) AS made;

-- name: now
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
       current_setting('server_version') AS version;
