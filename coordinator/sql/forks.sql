-- Statements about forks, by name.

-- name: note_fork
-- Task $1 is to be forked from $2, from step $3 on, at $4 (ms), by $5 for the reason $6.
INSERT INTO headway.forks (id, origin, step, at, by, reason)
VALUES ($1::uuid, $2::uuid, $3, to_timestamp($4::bigint / 1000.0), $5, $6)
ON CONFLICT DO NOTHING;

-- name: forks_of_task
-- The tasks that were forked from $1, oldest first, at most $2.
SELECT f.id
FROM headway.forks AS f
JOIN headway.tasks AS t ON t.id = f.id
WHERE f.origin = $1::uuid
ORDER BY f.id
LIMIT $2;
