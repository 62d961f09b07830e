-- Tasks, their history, the sagas they run, and what coordinators know of each other.

CREATE SCHEMA IF NOT EXISTS headway;

CREATE TABLE headway.sagas (
    name text NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    digest text NOT NULL,
    body json NOT NULL,
    registered_at timestamptz NOT NULL,
    PRIMARY KEY (name, version)
);

-- One row a task. `state` is the fold of its history; `version` counts the history's events.
-- `due_at` is the one timer: when the sweep looks at the task even if nothing happens.
CREATE TABLE headway.tasks (
    id uuid PRIMARY KEY,
    saga text NOT NULL,
    saga_version integer NOT NULL,
    status text NOT NULL CHECK (
        status IN (
            'running',               -- -> succeeded | compensating | parked
            'compensating',          -- -> compensated | failed_to_compensate
            'succeeded',             -- ended
            'compensated',           -- ended
            'parked',                -- waits for a person -> running | compensating
            'failed_to_compensate'   -- waits for a person -> compensating
        )
    ),
    version integer NOT NULL CHECK (version > 0),
    due_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    input_digest bytea NOT NULL,
    input json NOT NULL,
    attributes jsonb NOT NULL,
    state json NOT NULL,
    manifest json,
    parent json,                     -- [task, step, attempt, depth]
    waits boolean NOT NULL,          -- for a person: parked, or at an approval
    FOREIGN KEY (saga, saga_version) REFERENCES headway.sagas (name, version),
    -- nothing can be stuck: whatever neither ended nor waits for a person has a timer
    CHECK ((due_at IS NULL) = (status IN ('succeeded', 'compensated', 'parked', 'failed_to_compensate')))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX tasks_due ON headway.tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_open ON headway.tasks (id) WHERE status NOT IN ('succeeded', 'compensated');
CREATE INDEX tasks_waiting ON headway.tasks (id) WHERE waits;
CREATE INDEX tasks_of_saga ON headway.tasks (saga, id);
CREATE INDEX tasks_attributes ON headway.tasks USING gin (attributes jsonb_path_ops)
WHERE attributes <> '{}'::jsonb;

-- The history. Partitioned by month of the task's UUIDv7, so that old months can be dropped whole;
-- ids that are not UUIDv7 go to the default partition.
CREATE TABLE headway.task_events (
    task_id uuid NOT NULL,
    version integer NOT NULL,
    type text NOT NULL,
    at timestamptz NOT NULL,
    data json NOT NULL,
    PRIMARY KEY (task_id, version)
) PARTITION BY RANGE (task_id);

CREATE TABLE headway.task_events_other PARTITION OF headway.task_events DEFAULT;

-- The smallest UUIDv7 of a moment.
CREATE FUNCTION headway.uuid7_floor(moment timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT
AS $$
    SELECT (
        lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20)
    )::uuid
$$;

-- Make the history partitions of this month and the `months` after it, where they are missing.
CREATE FUNCTION headway.ensure_history_partitions(moment timestamptz, months integer)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    first_day timestamptz;
    name text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headway.ensure_history_partitions'));
    FOR ahead IN 0..months LOOP
        first_day := (date_trunc('month', moment AT TIME ZONE 'UTC')
            + make_interval(months => ahead)) AT TIME ZONE 'UTC';
        name := 'task_events_' || to_char(first_day AT TIME ZONE 'UTC', 'YYYY_MM');
        IF to_regclass('headway.' || name) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE headway.%I PARTITION OF headway.task_events FOR VALUES FROM (%L) TO (%L)',
                name,
                headway.uuid7_floor(first_day),
                headway.uuid7_floor(
                    (first_day AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC'
                )
            );
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END
$$;

-- Which incarnation of each stream was last seen whole. Another `created` means a lost store.
CREATE TABLE headway.streams (
    name text PRIMARY KEY,
    created text NOT NULL
);

-- Coordinators say that they live; a peer that falls silent leaves dispatches to look after.
CREATE TABLE headway.coordinators (
    id uuid PRIMARY KEY,
    seen_at timestamptz NOT NULL
);
