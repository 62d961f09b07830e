-- Webhooks, and what came by them.

-- name: webhooks
-- All of them, or the one of this name; its secret before only while that is good.
SELECT name, salt, saga, task, signal, payload, created_at, created_by,
       CASE WHEN old_until > clock_timestamp() THEN old_salt END AS old_salt,
       CASE WHEN old_until > clock_timestamp() THEN old_until END AS old_until
FROM headway.webhooks
WHERE $1::text IS NULL OR name = $1::text
ORDER BY name;

-- name: make_webhook
-- $1 name, $2 salt, $3 saga, $4 task, $5 signal, $6 payload, $7 by. No row: there is one.
WITH made AS (
    INSERT INTO headway.webhooks (
        name, salt, saga, task, signal, payload, created_at, created_by
    )
    VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), $7)
    ON CONFLICT DO NOTHING
    RETURNING name, saga, task, signal, payload, created_at, created_by
),

noted AS (
    INSERT INTO headway.acts (at, kind, who, what, data)
    SELECT created_at, 'webhook-created', created_by, name,
           json_build_object('saga', saga, 'task', task, 'signal', signal, 'payload', payload)
    FROM made
)

SELECT name, saga, task, signal, payload, created_at, created_by, NULL::timestamptz AS old_until
FROM made;

-- name: rotate_webhook
-- Webhook $1 has salt $2 from now on, and the one before for $3 seconds more; $4 by, $5 reason. No
-- row: there is none.
WITH rotated AS (
    UPDATE headway.webhooks
    SET salt = $2,
        old_salt = CASE WHEN $3::integer > 0 THEN salt END,
        old_until = CASE
            WHEN $3::integer > 0 THEN clock_timestamp() + make_interval(secs => $3::integer)
        END
    WHERE name = $1
    RETURNING name, saga, task, signal, payload, created_at, created_by, old_until
),

noted AS (
    INSERT INTO headway.acts (kind, who, what, reason, data)
    SELECT 'webhook-rotated', $4, name, $5, json_build_object('overlap_s', $3::integer)
    FROM rotated
)

SELECT name, saga, task, signal, payload, created_at, created_by, old_until FROM rotated;

-- name: remove_webhook
-- $1 name, $2 by, $3 reason. No row: there is none.
WITH removed AS (
    DELETE FROM headway.webhooks WHERE name = $1 RETURNING name
)

INSERT INTO headway.acts (kind, who, what, reason)
SELECT 'webhook-removed', $2, name, $3
FROM removed
RETURNING what;

-- name: take_delivery
-- Remember delivery $2 of webhook $1, for task $3 and signal $4, at $5 (ms), and forget what came
-- $6 ms before. Answers what is remembered of it, and whether that is `fresh`; nothing if a peer
-- takes it in this very moment: ask again.
WITH forgotten AS (
    DELETE FROM headway.webhook_deliveries
    WHERE at < to_timestamp(($5::bigint - $6::bigint) / 1000.0)
),

taken AS (
    INSERT INTO headway.webhook_deliveries (webhook, id, task_id, signal, at)
    VALUES ($1, $2, $3::uuid, $4, to_timestamp($5::bigint / 1000.0))
    ON CONFLICT DO NOTHING
    RETURNING task_id, signal
)

SELECT task_id, signal, true AS fresh FROM taken
UNION ALL
SELECT task_id, signal, false FROM headway.webhook_deliveries WHERE webhook = $1 AND id = $2
LIMIT 1;
