-- Statements of limits, admissions, turns and breakers. The clock is PostgreSQL's; moments come and
-- go as microseconds since 1970 (bigint).

-- name: limits
-- What is declared.
SELECT l.scope, l.name, l.rate, l.burst, l.concurrency, l.set_by, l.set_at
FROM headway.limits AS l
ORDER BY l.scope, l.name;

-- name: set_limit
-- $1 scope, $2 name, $3 rate, $4 burst, $5 concurrency, $6 by whom
WITH declared AS (
    INSERT INTO headway.limits (scope, name, rate, burst, concurrency, set_by)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (scope, name) DO UPDATE
    SET rate = excluded.rate,
        burst = excluded.burst,
        concurrency = excluded.concurrency,
        set_by = excluded.set_by,
        set_at = excluded.set_at
    RETURNING scope, name, rate, burst, concurrency, set_by, set_at
),

noted AS (
    INSERT INTO headway.acts (at, kind, who, what, data)
    SELECT set_at, 'limit-set', set_by, scope || ' ' || name,
           json_build_object('rate', rate, 'burst', burst, 'concurrency', concurrency)
    FROM declared
)

SELECT scope, name, rate, burst, concurrency, set_by, set_at FROM declared;

-- name: remove_limit
-- $1 scope, $2 name, $3 by whom. No row: there is none.
WITH removed AS (
    DELETE FROM headway.limits WHERE scope = $1 AND name = $2 RETURNING scope, name
)

INSERT INTO headway.acts (kind, who, what)
SELECT 'limit-removed', $3, scope || ' ' || name
FROM removed
RETURNING what;

-- name: admissions_exist
SELECT EXISTS (SELECT FROM headway.admissions) AS exist;

-- name: queue_commands
-- Let commands wait: $1 tasks, $2 steps, $3 phases, $4 attempts, $5 epochs, $6 agents, $7 subjects,
-- $8 places, $9 priorities. Only a newer command takes the place of another one of its step; one that takes the
-- place of one that waits keeps its place in the line.
INSERT INTO headway.admissions AS a (
    task_id, step, phase, attempt, epoch, agent, subject, places, priority, again, state, since
)
SELECT q.task_id, q.step, q.phase, q.attempt, q.epoch, q.agent, q.subject,
       ARRAY(SELECT json_array_elements_text(q.places)),
       q.priority, q.attempt > 1 OR q.epoch > 0, 'waiting', clock_timestamp()
FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::integer[], $5::integer[], $6::text[], $7::text[],
    $8::json[], $9::smallint[]
) AS q (task_id, step, phase, attempt, epoch, agent, subject, places, priority)
ORDER BY q.task_id, q.step
ON CONFLICT (task_id, step) DO UPDATE
SET phase = excluded.phase,
    attempt = excluded.attempt,
    epoch = excluded.epoch,
    agent = excluded.agent,
    subject = excluded.subject,
    places = excluded.places,
    priority = excluded.priority,
    again = excluded.again,
    state = 'waiting',
    since = CASE WHEN a.state = 'waiting' THEN a.since ELSE excluded.since END,
    asked = '',
    turn_us = 0
WHERE (a.phase, a.attempt, a.epoch) < (excluded.phase, excluded.attempt, excluded.epoch);

-- name: unqueue_commands
-- Take commands out of the line: $1 tasks, $2 steps, $3 subjects, $4 up to which attempt. Those of
-- epoch 0 had never been published before.
DELETE FROM headway.admissions AS a
USING unnest($1::uuid[], $2::text[], $3::text[], $4::integer[]) AS w (task_id, step, subject, attempt)
WHERE a.task_id = w.task_id AND a.step = w.step AND a.subject = w.subject AND a.attempt <= w.attempt
  AND a.state = 'waiting'
RETURNING a.subject, a.epoch;

-- name: waiting_commands
-- Which of these wait: $1 tasks, $2 steps, $3 subjects.
SELECT a.subject
FROM headway.admissions AS a
JOIN unnest($1::uuid[], $2::text[], $3::text[]) AS w (task_id, step, subject)
    ON a.task_id = w.task_id AND a.step = w.step AND a.subject = w.subject
WHERE a.state = 'waiting';

-- name: release_admissions
-- Attempts that ended: $1 tasks, $2 steps, $3 phases, $4 attempts.
DELETE FROM headway.admissions AS a
USING unnest($1::uuid[], $2::text[], $3::text[], $4::integer[]) AS e (task_id, step, phase, attempt)
WHERE a.task_id = e.task_id AND a.step = e.step AND a.phase = e.phase AND a.attempt <= e.attempt;

-- name: take_admission_turn
-- Be the one who admits, or stay it: $1 coordinator, $2 for how long (ms). A turn that ends too far
-- ahead is one from before the clock was put back.
UPDATE headway.admission_turn
SET holder = $1::uuid,
    until = clock_timestamp() + make_interval(secs => $2::bigint / 1000.0)
WHERE number = 1
  AND (
        holder = $1::uuid
        OR until < clock_timestamp()
        OR until > clock_timestamp() + make_interval(secs => $2::bigint / 500.0)
    )
RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us;

-- name: admission_usage
-- How many attempts are admitted and not ended in each place, and how many of them have not begun.
SELECT p.place, count(*) AS open, count(*) FILTER (WHERE a.state = 'admitted') AS ready
FROM headway.admissions AS a
CROSS JOIN unnest(a.places) AS p (place)
WHERE a.state <> 'waiting'
GROUP BY p.place;

-- name: admission_candidates
-- The first $3 of each agent's line, without those at a place in $2; and the last $3 of those that are
-- new, that is $4 ms old at most. $1 agents.
SELECT c.task_id, c.step, c.phase, c.attempt, c.epoch, c.agent, c.places, c.priority, c.fresh,
       (extract(epoch FROM c.since) * 1000000)::bigint AS since_us
FROM unnest($1::text[]) AS wanted (agent)
CROSS JOIN LATERAL (
    (
        SELECT a.*, false AS fresh
        FROM headway.admissions AS a
        WHERE a.agent = wanted.agent AND a.state = 'waiting' AND NOT a.places && $2::text[]
        ORDER BY (a.phase = 'compensation') DESC, a.priority DESC, a.since
        LIMIT $3
    )
    UNION ALL
    (
        SELECT a.*, true AS fresh
        FROM headway.admissions AS a
        WHERE a.agent = wanted.agent AND a.state = 'waiting' AND NOT a.again
          AND NOT a.places && $2::text[]
          AND a.since > clock_timestamp() - make_interval(secs => $4::bigint / 1000.0)
        ORDER BY (a.phase = 'compensation') DESC, a.priority DESC, a.since DESC
        LIMIT $3
    )
) AS c;

-- name: bucket_levels
-- When these places' buckets are full again, as stored and, if the clock was put back since, as far
-- from now as it was then; those that have none yet get one.
WITH wanted AS (
    SELECT DISTINCT w.place FROM unnest($1::text[]) AS w (place)
),

made AS (
    INSERT INTO headway.buckets (place, full_us)
    SELECT w.place, 0
    FROM wanted AS w
    WHERE NOT EXISTS (SELECT FROM headway.buckets AS b WHERE b.place = w.place)
    ORDER BY w.place
    ON CONFLICT DO NOTHING
)

SELECT w.place,
       coalesce(b.full_us, 0) AS full_us,
       coalesce(b.full_us - greatest(b.said_us - n.now_us, 0), 0) AS level_us,
       n.now_us
FROM wanted AS w
CROSS JOIN (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
) AS n
LEFT JOIN headway.buckets AS b ON b.place = w.place;

-- name: admit
-- Admit commands that wait, if it is still coordinator $1 who admits: $2 tasks, $3 steps, $4 phases,
-- $5 attempts, $6 epochs.
WITH turn AS (
    SELECT t.number
    FROM headway.admission_turn AS t
    WHERE t.number = 1 AND t.holder = $1::uuid AND t.until > clock_timestamp()
    FOR SHARE
)

UPDATE headway.admissions AS a
SET state = 'admitted', since = clock_timestamp()
FROM turn,
     unnest($2::uuid[], $3::text[], $4::text[], $5::integer[], $6::integer[])
         AS w (task_id, step, phase, attempt, epoch)
WHERE a.task_id = w.task_id AND a.step = w.step AND a.phase = w.phase
  AND a.attempt = w.attempt AND a.epoch = w.epoch AND a.state = 'waiting'
RETURNING a.task_id, a.step;

-- name: drop_admissions
-- Rows of commands that nobody wants any more: $1 tasks, $2 steps, $3 phases, $4 attempts, $5 epochs.
DELETE FROM headway.admissions AS a
USING unnest($1::uuid[], $2::text[], $3::text[], $4::integer[], $5::integer[])
    AS w (task_id, step, phase, attempt, epoch)
WHERE a.task_id = w.task_id AND a.step = w.step AND a.phase = w.phase
  AND a.attempt = w.attempt AND a.epoch = w.epoch;

-- name: requeue_admissions
-- Admitted, and not stored in the stream as far as we know: back to where they were in the line.
UPDATE headway.admissions AS a
SET state = 'waiting'
FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::integer[])
    AS w (task_id, step, attempt, epoch)
WHERE a.task_id = w.task_id AND a.step = w.step AND a.attempt = w.attempt AND a.epoch = w.epoch
  AND a.state = 'admitted';

-- name: admissions_after
-- A page of rows older than $3 ms, after task $1, at most $2 of them.
SELECT a.task_id, a.step, a.phase, a.attempt, a.epoch
FROM headway.admissions AS a
WHERE a.task_id > $1::uuid
  AND a.since < clock_timestamp() - make_interval(secs => $3::bigint / 1000.0)
ORDER BY a.task_id, a.step
LIMIT $2;

-- name: ease_bucket
-- Another rate was declared: what was taken at the old one holds nobody for longer than a bucket that
-- is empty now. $1 place, $2 how long an empty one takes to fill (us). For a key, of all its values.
UPDATE headway.buckets
SET full_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $2::bigint
WHERE (place = $1 OR starts_with(place, $1 || '/'))
  AND full_us > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $2::bigint;

-- name: prune_buckets
-- A bucket that is full is as good as none.
DELETE FROM headway.buckets
WHERE full_us < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $1::bigint * 1000;

-- name: standings
-- What is known of the commands of these steps: $1 tasks, $2 steps.
SELECT w.task_id, w.step, t.saga, t.attributes, t.priority, a.phase, a.attempt, a.epoch, a.state,
       a.asked, a.turn_us, a.agent
FROM unnest($1::uuid[], $2::text[]) AS w (task_id, step)
JOIN headway.tasks AS t ON t.id = w.task_id
LEFT JOIN headway.admissions AS a ON a.task_id = w.task_id AND a.step = w.step;

-- name: give_turns
-- All or nothing, unless a bucket is not as it was read: $1 places, $2 levels as read, $3 levels to
-- write; $4 tasks, $5 steps, $6 phases, $7 attempts, $8 epochs, $9 agents, $10 places, $11 priorities,
-- $12 by which delivery it was asked, $13 turns.
WITH locked AS (
    SELECT b.place
    FROM headway.buckets AS b
    JOIN unnest($1::text[], $2::bigint[]) AS r (place, full_us)
        ON r.place = b.place AND r.full_us = b.full_us
    ORDER BY b.place
    FOR UPDATE OF b
),

verdict AS (
    SELECT count(*) = cardinality($1::text[]) AS fits FROM locked
),

moved AS (
    UPDATE headway.buckets AS b
    SET full_us = n.full_us,
        said_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    FROM unnest($1::text[], $3::bigint[]) AS n (place, full_us), verdict AS v
    WHERE v.fits AND b.place = n.place
),

given AS (
    INSERT INTO headway.admissions AS a (
        task_id, step, phase, attempt, epoch, agent, subject, places, priority, again, state, since,
        asked, turn_us
    )
    SELECT g.task_id, g.step, g.phase, g.attempt, g.epoch, g.agent, '',
           ARRAY(SELECT json_array_elements_text(g.places)),
           g.priority, g.attempt > 1 OR g.epoch > 0, 'begun', clock_timestamp(), g.asked, g.turn_us
    FROM verdict AS v,
         unnest(
             $4::uuid[], $5::text[], $6::text[], $7::integer[], $8::integer[], $9::text[],
             $10::json[], $11::smallint[], $12::text[], $13::bigint[]
         ) AS g (
             task_id, step, phase, attempt, epoch, agent, places, priority, asked, turn_us
         )
    WHERE v.fits
    ORDER BY g.task_id, g.step
    ON CONFLICT (task_id, step) DO UPDATE
    SET phase = excluded.phase,
        attempt = excluded.attempt,
        epoch = excluded.epoch,
        agent = excluded.agent,
        places = excluded.places,
        again = excluded.again,
        state = 'begun',
        since = excluded.since,
        asked = excluded.asked,
        turn_us = excluded.turn_us
    WHERE (a.phase, a.attempt, a.epoch) <= (excluded.phase, excluded.attempt, excluded.epoch)
)

SELECT fits FROM verdict;

-- name: admissions_of_task
-- The rows of a task, and how many commands are before each in its agent's line.
SELECT a.step, a.state, a.agent, a.places,
       (
           SELECT count(*)
           FROM headway.admissions AS b
           WHERE a.state = 'waiting' AND b.state = 'waiting' AND b.agent = a.agent
             AND ((b.phase = 'compensation'), b.priority, a.since)
                 > ((a.phase = 'compensation'), a.priority, b.since)
       ) AS before
FROM headway.admissions AS a
WHERE a.task_id = $1::uuid;

-- name: waiting_by_agent
SELECT agent, count(*) AS waiting FROM headway.admissions WHERE state = 'waiting' GROUP BY agent;

-- name: use_by_place
-- How many commands wait, and how many attempts go on, where something is limited.
SELECT p.place,
       count(*) FILTER (WHERE a.state = 'waiting') AS waiting,
       count(*) FILTER (WHERE a.state <> 'waiting') AS open
FROM headway.admissions AS a
CROSS JOIN unnest(a.places) AS p (place)
GROUP BY p.place;

-- name: breakers
SELECT agent, state, version, reason, by, trips,
       (extract(epoch FROM since) * 1000)::bigint AS since,
       (extract(epoch FROM until) * 1000)::bigint AS until,
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
FROM headway.breakers
ORDER BY agent;

-- name: turn_breaker
-- $1 agent, $2 version read (0: there is none), $3 state, $4 open for how long (ms; null: it is not
-- open), $5 trips, $6 reason, $7 by, $8 what the audit log calls it ('': no person did it). Answers
-- the row, unless it is not as it was read.
WITH turned AS (
    INSERT INTO headway.breakers AS b (agent, state, version, since, until, trips, reason, by)
    SELECT $1, $3, $2::integer + 1, clock_timestamp(),
           clock_timestamp() + make_interval(secs => $4::bigint / 1000.0), $5, $6, $7
    ON CONFLICT (agent) DO UPDATE
    SET state = excluded.state,
        version = excluded.version,
        since = excluded.since,
        until = excluded.until,
        trips = excluded.trips,
        reason = excluded.reason,
        by = excluded.by
    WHERE b.version = excluded.version - 1
    RETURNING agent, state, version, reason, by, trips, since, until
),

noted AS (
    INSERT INTO headway.acts (at, kind, who, what, reason)
    SELECT since, $8, by, 'agent ' || agent, reason
    FROM turned
    WHERE $8 <> ''
)

SELECT agent, state, version, reason, by, trips,
       (extract(epoch FROM since) * 1000)::bigint AS since,
       (extract(epoch FROM until) * 1000)::bigint AS until,
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
FROM turned;
