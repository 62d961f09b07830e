-- Gates: calls of sensitive tools. Times come in as milliseconds since 1970 (bigint).

-- name: signing_key
SELECT seed FROM headway.signing_keys;

-- name: keep_signing_key
INSERT INTO headway.signing_keys (number, seed, made_at)
VALUES (1, $1::bytea, to_timestamp($2::bigint / 1000.0))
ON CONFLICT DO NOTHING;

-- name: gate_and_call
-- The call $4 of the journal of $1-$3: its unsettled intent (null without one), and its gate $5
-- (null without one). No row if there is no journal.
SELECT h.epoch, h.agent, i.tool, headway.text_of(i.meta, 'arguments_digest') AS arguments_digest,
       g.tool AS gate_tool, g.arguments_digest AS gate_arguments_digest, g.status, g.decided_by,
       g.reason
FROM headway.journals AS h
LEFT JOIN headway.journal_entries AS i
    ON i.task_id = h.task_id AND i.step = h.step AND i.phase = h.phase
    AND i.seq = (h.unsettled -> $4::text ->> 'seq')::integer
LEFT JOIN headway.gates AS g ON g.task_id = h.task_id AND g.invocation = $5::uuid
WHERE h.task_id = $1::uuid AND h.step = $2 AND h.phase = $3;

-- name: await_approval
-- Have call $2 of task $1 wait for a person, unless it does or did; answers whether it waits anew.
-- $3-$7 step, phase, key, tool, arguments' digest; $8 now; $9 who asks; $10 the event's data
WITH waiting AS (
    INSERT INTO headway.gates AS g (
        task_id, invocation, step, phase, key, tool, arguments_digest, status, since
    )
    VALUES (
        $1::uuid, $2::uuid, $3, $4, $5, $6, $7, 'waiting', to_timestamp($8::bigint / 1000.0)
    )
    ON CONFLICT (task_id, invocation) DO UPDATE
    SET status = excluded.status, since = excluded.since
    WHERE g.status = 'open'
    RETURNING g.task_id, g.step, g.tool, g.since
)

INSERT INTO headway.gate_events (task_id, step, kind, at, who, tool, reason, data)
SELECT task_id, step, 'requested', since, $9, tool, '', $10::json
FROM waiting
RETURNING id;

-- name: issue_token
-- Give token $8 for call $2 of task $1, unless a person is waited for or has rejected it.
-- $3-$7 step, phase, key, tool, arguments' digest; $9 now; $10 who asks; $11 the event's data
WITH issued AS (
    INSERT INTO headway.gates AS g (
        task_id, invocation, step, phase, key, tool, arguments_digest, status, since, token
    )
    VALUES (
        $1::uuid, $2::uuid, $3, $4, $5, $6, $7, 'open', to_timestamp($9::bigint / 1000.0), $8::uuid
    )
    ON CONFLICT (task_id, invocation) DO UPDATE
    SET token = excluded.token
    WHERE g.status IN ('open', 'approved')
    RETURNING g.task_id, g.step, g.tool, g.token
)

INSERT INTO headway.gate_events (task_id, step, kind, at, who, tool, reason, token, data)
SELECT task_id, step, 'issued', to_timestamp($9::bigint / 1000.0), $10, tool, '', token, $11::json
FROM issued
RETURNING id;

-- name: redeem_token
-- Record use $5 of token $4 at $6, if the task $1 is at version $2, the token is the newest of call
-- $3, its intent is unsettled, and nobody was first; $7 the event's data. The task's row is locked,
-- so that it cannot move on in between.
WITH standing AS (
    SELECT id
    FROM headway.tasks
    WHERE id = $1::uuid AND version = $2::integer
    FOR SHARE
)

INSERT INTO headway.gate_events (task_id, step, kind, at, who, tool, reason, token, use, data)
SELECT g.task_id, g.step, 'redeemed', to_timestamp($6::bigint / 1000.0), '', g.tool, '', g.token,
       $5::uuid, $7::json
FROM standing AS t
JOIN headway.gates AS g ON g.task_id = t.id AND g.invocation = $3::uuid AND g.token = $4::uuid
JOIN headway.journals AS h
    ON h.task_id = g.task_id AND h.step = g.step AND h.phase = g.phase
    AND (h.unsettled -> g.key) IS NOT NULL
ON CONFLICT (task_id, token) WHERE kind = 'redeemed' DO NOTHING
RETURNING at;

-- name: token_use
-- What became of token $3 of call $2 of task $1.
SELECT g.token = $3::uuid AS newest,
       (h.unsettled -> g.key) IS NOT NULL AS unsettled,
       e.use,
       e.at
FROM headway.gates AS g
LEFT JOIN headway.journals AS h
    ON h.task_id = g.task_id AND h.step = g.step AND h.phase = g.phase
LEFT JOIN headway.gate_events AS e
    ON e.task_id = g.task_id AND e.token = $3::uuid AND e.kind = 'redeemed'
WHERE g.task_id = $1::uuid AND g.invocation = $2::uuid;

-- name: note_refusal
-- $1 task, $2 step, $3 when, $4 who asked, $5 tool, $6 why, $7 token, $8 the event's data
INSERT INTO headway.gate_events (task_id, step, kind, at, who, tool, reason, token, data)
VALUES ($1::uuid, $2, 'refused', to_timestamp($3::bigint / 1000.0), $4, $5, $6, $7::uuid, $8::json);

-- name: gate
SELECT task_id, invocation, step, phase, key, tool, arguments_digest, status, since, decided_at,
       decided_by, reason
FROM headway.gates
WHERE task_id = $1::uuid AND invocation = $2::uuid;

-- name: decide_gate
-- $3 approved or rejected, $4 by, $5 reason, $6 when, $7 the event's data. No row: it does not wait.
WITH decided AS (
    UPDATE headway.gates
    SET status = $3, decided_by = $4, reason = $5, decided_at = to_timestamp($6::bigint / 1000.0)
    WHERE task_id = $1::uuid AND invocation = $2::uuid AND status = 'waiting'
    RETURNING *
),

noted AS (
    INSERT INTO headway.gate_events (task_id, step, kind, at, who, tool, reason, data)
    SELECT task_id, step, status, decided_at, decided_by, tool, reason, $7::json
    FROM decided
)

SELECT task_id, invocation, step, phase, key, tool, arguments_digest, status, since, decided_at,
       decided_by, reason
FROM decided;

-- name: waiting_gates
-- Calls that wait for a person and that their task still wants, of saga $1 (null: any), longest
-- first, at most $2; with their arguments, if those have no more than $3 bytes; of owner $4, and of
-- task $5 (null: any).
SELECT g.task_id, g.invocation, g.step, g.phase, g.key, g.tool, g.arguments_digest, g.since, t.saga,
       i.data AS arguments
FROM headway.gates AS g
JOIN headway.tasks AS t ON t.id = g.task_id
LEFT JOIN headway.journals AS h
    ON h.task_id = g.task_id AND h.step = g.step AND h.phase = g.phase
LEFT JOIN headway.journal_entries AS i
    ON i.task_id = h.task_id AND i.step = h.step AND i.phase = h.phase
    AND i.seq = (h.unsettled -> g.key ->> 'seq')::integer AND i.bytes <= $3::integer
WHERE g.status = 'waiting'
  AND ($1::text IS NULL OR t.saga = $1::text)
  AND ($4::text IS NULL OR t.owner = $4::text)
  AND ($5::uuid IS NULL OR g.task_id = $5::uuid)
  AND (
        (g.phase = 'action' AND t.status = 'running')
        OR (g.phase = 'compensation' AND t.status = 'compensating')
    )
  AND replace(t.state::text, '\u0000', '')::json -> 'steps' -> g.step ->> 'status'
    = CASE g.phase WHEN 'action' THEN 'scheduled' ELSE 'compensating' END
ORDER BY g.since, g.task_id, g.invocation
LIMIT $2;

-- name: ensure_gate_partitions
SELECT headway.ensure_gate_partitions(to_timestamp($1::bigint / 1000.0), 2) AS made;
