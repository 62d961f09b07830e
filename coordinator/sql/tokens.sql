-- Tokens, and the secret that commands are signed with.

-- name: tokens
-- Those that are good now, and those that were revoked, oldest first.
SELECT id, name, role, digest, made_at, revoked_at FROM headway.tokens ORDER BY made_at, id;

-- name: make_token
-- $1 id, $2 name, $3 role, $4 digest, $5 at (ms), $6 by. No row: another token has the name.
WITH made AS (
    INSERT INTO headway.tokens (id, name, role, digest, made_at)
    VALUES ($1, $2, $3, $4, to_timestamp($5::bigint / 1000.0))
    ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
    RETURNING id, name, role, made_at
)

INSERT INTO headway.acts (at, kind, who, what, data)
SELECT made_at, 'token-created', $6, name, json_build_object('id', id, 'role', role)
FROM made
RETURNING at AS made_at;

-- name: revoke_token
-- $1 name, $2 at (ms), $3 by. No row: no token that is good has the name.
WITH revoked AS (
    UPDATE headway.tokens
    SET revoked_at = to_timestamp($2::bigint / 1000.0)
    WHERE name = $1 AND revoked_at IS NULL
    RETURNING id, name, role, digest, made_at, revoked_at
),

noted AS (
    INSERT INTO headway.acts (at, kind, who, what, data)
    SELECT revoked_at, 'token-revoked', $3, name, json_build_object('id', id, 'role', role)
    FROM revoked
)

SELECT id, name, role, digest, made_at, revoked_at FROM revoked;

-- name: command_secret
SELECT secret FROM headway.command_secrets;

-- name: keep_command_secret
-- Keep it unless there is one: $1 secret, $2 at (ms).
INSERT INTO headway.command_secrets (number, secret, made_at)
VALUES (1, $1, to_timestamp($2::bigint / 1000.0))
ON CONFLICT DO NOTHING;
