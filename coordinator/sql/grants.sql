-- Which keys let agents in.

-- name: grants
-- All that were ever made, oldest first.
SELECT public_key, agent, granted_at, granted_by, revoked_at, revoked_by
FROM headway.grants ORDER BY granted_at, public_key;

-- name: grant_key
-- $1 public key, $2 agent, $3 by, $4 at (ms). No row: there is such a key.
WITH granted AS (
    INSERT INTO headway.grants (public_key, agent, granted_by, granted_at)
    VALUES ($1, $2, $3, to_timestamp($4::bigint / 1000.0))
    ON CONFLICT DO NOTHING
    RETURNING public_key, agent, granted_by, granted_at
)

INSERT INTO headway.acts (at, kind, who, what, data)
SELECT granted_at, 'key-granted', granted_by, 'agent ' || agent,
       json_build_object('public_key', public_key)
FROM granted
RETURNING at AS granted_at;

-- name: revoke_keys
-- $1 agent, $2 a public key or '' for all of its keys, $3 by, $4 at (ms). Answers the keys.
WITH revoked AS (
    UPDATE headway.grants
    SET revoked_by = $3, revoked_at = to_timestamp($4::bigint / 1000.0)
    WHERE agent = $1 AND $2 IN ('', public_key) AND revoked_at IS NULL
    RETURNING public_key, agent, revoked_by, revoked_at
),

noted AS (
    INSERT INTO headway.acts (at, kind, who, what, data)
    SELECT revoked_at, 'key-revoked', revoked_by, 'agent ' || agent,
           json_build_object('public_key', public_key)
    FROM revoked
)

SELECT public_key FROM revoked;
