-- Journals: where each stands, and its entries. Times are milliseconds since 1970 (bigint).

-- name: load_journals
-- Where these journals stand, what their tasks may do, and what those have used in all; a row for
-- each journal of a task that exists, whose `epoch` is null while nobody has opened it.
SELECT w.place, h.epoch, h.seq, h.attempt, h.command_epoch, h.agent, h.worker, h.undoing,
       h.resumed, h.failures, h.trail, h.unsettled, t.manifest, u.input_tokens, u.output_tokens, u.cost_usd
FROM unnest($1::uuid[], $2::text[], $3::text[])
    WITH ORDINALITY AS w (task_id, step, phase, place)
JOIN headway.tasks AS t ON t.id = w.task_id
LEFT JOIN headway.journals AS h
    ON h.task_id = w.task_id AND h.step = w.step AND h.phase = w.phase
CROSS JOIN LATERAL (
    SELECT coalesce(sum(s.input_tokens), 0)::bigint AS input_tokens,
           coalesce(sum(s.output_tokens), 0)::bigint AS output_tokens,
           coalesce(sum(s.cost_usd), 0)::double precision AS cost_usd
    FROM headway.journals AS s
    WHERE s.task_id = w.task_id
) AS u;

-- name: commit_journals
-- Move journals on that still stand where they were read, and append their entries.
-- $1-$6 task, step, phase, epoch, seq and undoing as they were read (epoch 0: nobody opened it)
-- $7-$17 epoch, seq, attempt, command epoch, agent, worker, undoing, resumed, failures, trail,
-- unsettled as they are now; $18-$20 tokens in, tokens out and US dollars that the entries add
-- $21 when (ms); $22-$36 entries: place of their journal in the arrays above (from 1), task, step,
-- phase, epoch, agent, seq, kind, key, tool, meta, data, by, reason, bytes of data
-- Rows are locked in the order of their ids, so that two batches cannot deadlock. Answers the
-- places that went through, with what their tasks have used in all.
WITH wanted AS (
    SELECT *
    FROM unnest(
        $1::uuid[], $2::text[], $3::text[], $4::integer[], $5::integer[], $6::boolean[],
        $7::integer[], $8::integer[], $9::integer[], $10::integer[], $11::text[], $12::text[],
        $13::boolean[], $14::integer[], $15::integer[], $16::json[], $17::json[],
        $18::bigint[], $19::bigint[], $20::double precision[]
    ) WITH ORDINALITY AS w (
        task_id, step, phase, epoch_read, seq_read, undoing_read,
        epoch, seq, attempt, command_epoch, agent, worker,
        undoing, resumed, failures, trail, unsettled,
        input_tokens, output_tokens, cost_usd, place
    )
),

locked AS (
    SELECT w.*
    FROM wanted AS w
    JOIN headway.journals AS h
        ON h.task_id = w.task_id AND h.step = w.step AND h.phase = w.phase
        AND h.epoch = w.epoch_read AND h.seq = w.seq_read AND h.undoing = w.undoing_read
    ORDER BY w.task_id, w.step, w.phase
    FOR UPDATE OF h
),

updated AS (
    UPDATE headway.journals AS h
    SET epoch = l.epoch,
        seq = l.seq,
        attempt = l.attempt,
        command_epoch = l.command_epoch,
        agent = l.agent,
        worker = l.worker,
        undoing = l.undoing,
        resumed = l.resumed,
        failures = l.failures,
        trail = l.trail,
        unsettled = l.unsettled,
        input_tokens = h.input_tokens + l.input_tokens,
        output_tokens = h.output_tokens + l.output_tokens,
        cost_usd = h.cost_usd + l.cost_usd::numeric
    FROM locked AS l
    WHERE h.task_id = l.task_id AND h.step = l.step AND h.phase = l.phase
    RETURNING l.place, l.task_id, l.input_tokens, l.output_tokens, l.cost_usd
),

inserted AS (
    INSERT INTO headway.journals (
        task_id, step, phase, epoch, seq, attempt, command_epoch, agent, worker, undoing, resumed,
        failures, trail, unsettled, input_tokens, output_tokens, cost_usd
    )
    SELECT w.task_id, w.step, w.phase, w.epoch, w.seq, w.attempt, w.command_epoch, w.agent,
           w.worker, w.undoing, w.resumed, w.failures, w.trail, w.unsettled, 0, 0, 0
    FROM wanted AS w
    WHERE w.epoch_read = 0
    ORDER BY w.task_id, w.step, w.phase
    ON CONFLICT DO NOTHING
    RETURNING task_id, step, phase
),

committed AS (
    SELECT place, task_id, input_tokens, output_tokens, cost_usd
    FROM updated
    UNION ALL
    SELECT w.place, w.task_id, 0, 0, 0
    FROM inserted AS i
    JOIN wanted AS w ON w.task_id = i.task_id AND w.step = i.step AND w.phase = i.phase
),

appended AS (
    INSERT INTO headway.journal_entries (
        task_id, step, phase, epoch, agent, seq, kind, key, tool, meta, data, by, reason, bytes, at
    )
    SELECT e.task_id, e.step, e.phase, e.epoch, e.agent, e.seq, e.kind, e.key, e.tool, e.meta,
           e.data, e.by, e.reason, e.bytes, to_timestamp($21::bigint / 1000.0)
    FROM unnest(
        $22::integer[], $23::uuid[], $24::text[], $25::text[], $26::integer[], $27::text[],
        $28::integer[], $29::text[], $30::text[], $31::text[], $32::json[], $33::json[],
        $34::text[], $35::text[], $36::integer[]
    ) AS e (
        place, task_id, step, phase, epoch, agent,
        seq, kind, key, tool, meta, data, by, reason, bytes
    )
    WHERE (e.place IN (SELECT place FROM committed)) IS TRUE
)

SELECT c.place,
       (u.input_tokens + sum(c.input_tokens) OVER of_task)::bigint AS input_tokens,
       (u.output_tokens + sum(c.output_tokens) OVER of_task)::bigint AS output_tokens,
       (u.cost_usd + sum(c.cost_usd::numeric) OVER of_task)::double precision AS cost_usd
FROM committed AS c
CROSS JOIN LATERAL (
    SELECT coalesce(sum(s.input_tokens), 0) AS input_tokens,
           coalesce(sum(s.output_tokens), 0) AS output_tokens,
           coalesce(sum(s.cost_usd), 0) AS cost_usd
    FROM headway.journals AS s
    WHERE s.task_id = c.task_id
) AS u
WINDOW of_task AS (PARTITION BY c.task_id);

-- name: journal_page
-- A journal's entries after $4, at most $5 of them and, but for the first, $6 bytes of data; each
-- with how many there would be without that limit.
SELECT seq, epoch, kind, key, tool, by, reason, at, meta, data, found
FROM (
    SELECT *,
           sum(bytes) OVER (ORDER BY seq) AS so_far,
           row_number() OVER (ORDER BY seq) AS place,
           count(*) OVER () AS found
    FROM (
        SELECT *
        FROM headway.journal_entries
        WHERE task_id = $1::uuid AND step = $2 AND phase = $3 AND seq > $4
        ORDER BY seq
        LIMIT $5
    ) AS first_ones
) AS page
WHERE so_far <= $6::bigint OR place = 1
ORDER BY seq;

-- name: journal_key
-- The last entry of the call $4 of a journal.
SELECT seq, epoch, kind, key, tool, by, reason, at, meta, data
FROM headway.journal_entries
WHERE task_id = $1::uuid AND step = $2 AND phase = $3 AND key = $4
ORDER BY seq DESC
LIMIT 1;

-- name: last_resumptions
-- The versions at which these tasks were last resumed by a person.
SELECT task_id, max(version) AS version
FROM headway.task_events
WHERE task_id = ANY($1::uuid[]) AND type = 'TaskResumed'
GROUP BY task_id;

-- name: unsettled_intents
-- The calls of these tasks whose end nobody knows, in the order in which they were begun.
SELECT e.task_id, e.step, e.phase, e.key, e.tool, e.meta ->> 'arguments_digest' AS arguments_digest,
       e.agent, e.at, e.data
FROM headway.journals AS h
CROSS JOIN LATERAL json_each(h.unsettled) AS u
JOIN headway.journal_entries AS e
    ON e.task_id = h.task_id AND e.step = h.step AND e.phase = h.phase
    AND e.seq = (u.value ->> 'seq')::integer
WHERE h.task_id = ANY($1::uuid[])
ORDER BY e.task_id, e.at, e.step, e.seq;

-- name: usage_of_task
-- What the model calls of a task have used, tokens in and out together.
SELECT coalesce(sum(input_tokens + output_tokens), 0)::bigint AS tokens,
       coalesce(sum(cost_usd), 0)::double precision AS cost_usd
FROM headway.journals
WHERE task_id = $1::uuid;

-- name: ensure_journal_partitions
SELECT headway.ensure_journal_partitions(to_timestamp($1::bigint / 1000.0), 2) AS made;

-- name: audit
-- The audit log from $1 (inclusive) to $2, after the entry ($3, $4, $5), at most $6.
SELECT at, task_id, id, step, kind, who, what, reason, data
FROM (
    (
        SELECT at, task_id, id, step, kind, who, what, reason, data
        FROM headway.audit_of_history
        WHERE at >= greatest($1::timestamptz, $3::timestamptz) AND at < $2::timestamptz
          AND (at, task_id, id) > ($3::timestamptz, $4::uuid, $5::text)
        ORDER BY at, task_id, id
        LIMIT $6
    )
    UNION ALL
    (
        SELECT at, task_id, id, step, kind, who, what, reason, data
        FROM headway.audit_of_journal
        WHERE at >= greatest($1::timestamptz, $3::timestamptz) AND at < $2::timestamptz
          AND (at, task_id, id) > ($3::timestamptz, $4::uuid, $5::text)
        ORDER BY at, task_id, id
        LIMIT $6
    )
    UNION ALL
    (
        SELECT at, task_id, id, step, kind, who, what, reason, data
        FROM headway.audit_of_gates
        WHERE at >= greatest($1::timestamptz, $3::timestamptz) AND at < $2::timestamptz
          AND (at, task_id, id) > ($3::timestamptz, $4::uuid, $5::text)
        ORDER BY at, task_id, id
        LIMIT $6
    )
    UNION ALL
    (
        SELECT at, task_id, id, step, kind, who, what, reason, data
        FROM headway.audit_of_acts
        WHERE at >= greatest($1::timestamptz, $3::timestamptz) AND at < $2::timestamptz
          AND (at, task_id, id) > ($3::timestamptz, $4::uuid, $5::text)
        ORDER BY at, task_id, id
        LIMIT $6
    )
) AS everything
ORDER BY at, task_id, id
LIMIT $6;

-- name: audit_of_task
-- As `audit`, of task $7 alone.
SELECT at, task_id, id, step, kind, who, what, reason, data
FROM headway.audit
WHERE task_id = $7::uuid AND at >= $1::timestamptz AND at < $2::timestamptz
  AND (at, task_id, id) > ($3::timestamptz, $4::uuid, $5::text)
ORDER BY at, task_id, id
LIMIT $6;
