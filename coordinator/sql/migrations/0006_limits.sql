-- Limits on agents, sagas and keys; commands that wait for their turn; breakers; priorities.

-- 9 is the most urgent. It has an effect only where something is limited.
ALTER TABLE headway.tasks
ADD COLUMN priority smallint NOT NULL DEFAULT 4 CHECK (priority BETWEEN 0 AND 9);

-- What people declared. `name` is an agent, a saga, or agent:attribute.
CREATE TABLE headway.limits (
    scope text NOT NULL CHECK (scope IN ('agent', 'saga', 'key')),
    name text NOT NULL,
    rate double precision CHECK (rate > 0),  -- attempts begun a second
    burst integer NOT NULL CHECK (burst > 0),
    concurrency integer CHECK (concurrency > 0),  -- attempts at a time
    set_by text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, name),
    CHECK (rate IS NOT NULL OR concurrency IS NOT NULL)
);

-- The token bucket of a place, by the generic cell rate algorithm: `full_us` is when it is full again
-- (the theoretical arrival time), in microseconds since 1970 by PostgreSQL's clock; `said_us` what that
-- clock said then, so that it is seen when it was put back.
CREATE TABLE headway.buckets (
    place text PRIMARY KEY,
    full_us bigint NOT NULL,
    said_us bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- One row for each command that something limits, from its dispatch to its attempt's end. The rows
-- are derived: from the tasks' state any of them can be made, or found stale.
CREATE TABLE headway.admissions (
    task_id uuid NOT NULL,
    step text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('action', 'compensation')),
    attempt integer NOT NULL,
    epoch integer NOT NULL,
    agent text NOT NULL,
    subject text NOT NULL,
    places text[] NOT NULL,   -- all that may limit it, whether or not something does at the moment
    priority smallint NOT NULL,
    again boolean NOT NULL,   -- a retry, or published again
    state text NOT NULL CHECK (
        state IN (
            'waiting',   -- in no stream -> admitted
            'admitted',  -- in the stream, or about to be -> begun
            'begun'      -- a worker was given its turn
        )
    ),
    since timestamptz NOT NULL,  -- in this state
    asked text NOT NULL DEFAULT '',  -- by which delivery, to whom: one turn for each
    turn_us bigint NOT NULL DEFAULT 0,  -- when its turn is, as in `buckets`
    PRIMARY KEY (task_id, step)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX admissions_waiting
ON headway.admissions (agent, (phase = 'compensation') DESC, priority DESC, since)
WHERE state = 'waiting';
CREATE INDEX admissions_new ON headway.admissions (agent, since)
WHERE state = 'waiting' AND NOT again;
CREATE INDEX admissions_open ON headway.admissions (agent) WHERE state <> 'waiting';

-- Which coordinator admits: one row, held for a moment and renewed.
CREATE TABLE headway.admission_turn (
    number integer PRIMARY KEY CHECK (number = 1),
    holder uuid NOT NULL,
    until timestamptz NOT NULL
);

INSERT INTO headway.admission_turn (number, holder, until)
VALUES (1, '00000000-0000-0000-0000-000000000000', '-infinity');

-- Agents that get no commands, or one at a time. An agent without a row gets all.
CREATE TABLE headway.breakers (
    agent text PRIMARY KEY,
    state text NOT NULL CHECK (
        state IN (
            'closed',   -- gets all -> open | paused
            'open',     -- gets none until `until` -> probing
            'probing',  -- gets one at a time -> closed | open
            'paused'    -- a person stopped it -> closed
        )
    ),
    version integer NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz,
    trips integer NOT NULL,  -- in a row
    reason text NOT NULL,
    by text NOT NULL,
    CHECK ((until IS NOT NULL) = (state = 'open'))
);
