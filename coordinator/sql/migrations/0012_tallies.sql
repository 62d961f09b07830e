-- What happened when, counted: one row for each 10 s in which a coordinator committed something.

-- The coordinator writes the whole row again while it counts on; nobody else does. `durations` counts
-- ended tasks by how long they took: bucket n, from 1, is up to 1.1^n ms.
CREATE TABLE headway.tallies (
    slice timestamptz NOT NULL,  -- when it began
    coordinator uuid NOT NULL,
    submitted integer NOT NULL,
    succeeded integer NOT NULL,
    compensated integer NOT NULL,
    parked integer NOT NULL,
    failures integer NOT NULL,
    retries integer NOT NULL,
    recoveries integer NOT NULL,
    durations jsonb NOT NULL,
    PRIMARY KEY (slice, coordinator)
) WITH (fillfactor = 50);
