-- How the whole system does.

-- name: keep_tallies
-- Write the slices of coordinator $1 as they are now, and drop those of all that began before $11
-- (ms): $2 when each began (ms), $3-$9 its counts, $10 its durations.
WITH dropped AS (
    DELETE FROM headway.tallies WHERE slice < to_timestamp($11::bigint / 1000.0)
)

INSERT INTO headway.tallies (
    slice, coordinator, submitted, succeeded, compensated, parked, failures, retries, recoveries,
    durations
)
SELECT to_timestamp(s.slice / 1000.0), $1::uuid, s.submitted, s.succeeded, s.compensated, s.parked,
       s.failures, s.retries, s.recoveries, s.durations
FROM unnest(
    $2::bigint[], $3::integer[], $4::integer[], $5::integer[], $6::integer[], $7::integer[],
    $8::integer[], $9::integer[], $10::jsonb[]
) AS s (
    slice, submitted, succeeded, compensated, parked, failures, retries, recoveries, durations
)
ON CONFLICT (slice, coordinator) DO UPDATE
SET submitted = excluded.submitted,
    succeeded = excluded.succeeded,
    compensated = excluded.compensated,
    parked = excluded.parked,
    failures = excluded.failures,
    retries = excluded.retries,
    recoveries = excluded.recoveries,
    durations = excluded.durations;

-- name: tallies_since
-- All coordinators' slices that began at $1 (ms) or later.
SELECT (extract(epoch FROM slice) * 1000)::bigint AS slice, submitted, succeeded, compensated,
       parked, failures, retries, recoveries, durations
FROM headway.tallies
WHERE slice >= to_timestamp($1::bigint / 1000.0)
ORDER BY slice, coordinator;

-- name: count_by_status
-- How many tasks there are of each status. Reads all of them: not for each request.
SELECT status, count(*) AS tasks FROM headway.tasks GROUP BY status;

-- name: count_waiting
-- How much the list of what waits for a person holds: tasks that are parked, their calls of which
-- nobody knows the end, steps that wait for approval, and calls that do and that their task still
-- wants. Reads all of that: not for each request.
SELECT (
    SELECT count(*)
    FROM headway.tasks
    WHERE waits AND status IN ('parked', 'failed_to_compensate')
) + (
    SELECT count(*)
    FROM headway.tasks AS t
    JOIN headway.journals AS h ON h.task_id = t.id
    CROSS JOIN LATERAL json_object_keys(h.unsettled) AS key
    WHERE t.waits AND t.status IN ('parked', 'failed_to_compensate')
) + (
    SELECT count(*)
    FROM headway.tasks AS t
    JOIN headway.sagas AS s ON s.name = t.saga AND s.version = t.saga_version
    CROSS JOIN LATERAL json_array_elements(s.body -> 'steps') AS declared
    WHERE t.waits
      AND t.status IN ('running', 'compensating')
      AND declared ->> 'kind' = 'approval'
      AND replace(t.state::text, '\u0000', '')::json -> 'steps' -> (declared ->> 'name')
        ->> 'status' = 'scheduled'
) + (
    SELECT count(*)
    FROM headway.gates AS g
    JOIN headway.tasks AS t ON t.id = g.task_id
    WHERE g.status = 'waiting'
      AND (
            (g.phase = 'action' AND t.status = 'running')
            OR (g.phase = 'compensation' AND t.status = 'compensating')
        )
      AND replace(t.state::text, '\u0000', '')::json -> 'steps' -> g.step ->> 'status'
        = CASE g.phase WHEN 'action' THEN 'scheduled' ELSE 'compensating' END
) AS waiting;

-- name: backlog
-- When the first timer goes off, and since when the oldest command waits for its turn.
SELECT (SELECT min(due_at) FROM headway.tasks WHERE due_at IS NOT NULL) AS oldest_due,
       (SELECT min(since) FROM headway.admissions WHERE state = 'waiting') AS oldest_admission;
