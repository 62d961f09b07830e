-- What became of dead letters. $1 is when their stream was created, $2 the sequence of a letter.

-- name: fates_of_letters
-- $2 sequences
SELECT sequence, fate, at, by, reason
FROM headway.dead_letters
WHERE stream_created = $1 AND sequence = ANY($2::bigint[]);

-- name: deal_with_letter
-- $3 replaying or dropped, $4 by, $5 reason, $6 task (the nil UUID for none), $7 kind of the act,
-- $8 what it is about, $9 its data; $10 seconds after which a replay that did not end is given up.
-- No row: somebody dealt with it before.
WITH dealt AS (
    INSERT INTO headway.dead_letters AS d (stream_created, sequence, fate, at, by, reason)
    VALUES ($1, $2, $3, clock_timestamp(), $4, $5)
    ON CONFLICT (stream_created, sequence) DO UPDATE
    SET fate = excluded.fate, at = excluded.at, by = excluded.by, reason = excluded.reason
    WHERE d.fate = 'replaying'
      AND d.at < clock_timestamp() - make_interval(secs => $10::double precision)
    RETURNING at
)

INSERT INTO headway.acts (at, task_id, kind, who, what, reason, data)
SELECT at, $6::uuid, $7, $4, $8, $5, $9::json
FROM dealt
RETURNING at;

-- name: letter_is_replayed
UPDATE headway.dead_letters
SET fate = 'replayed'
WHERE stream_created = $1 AND sequence = $2 AND fate = 'replaying';
