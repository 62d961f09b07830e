-- Traces: how a task is traced, and which spans are still to be sent.

-- '' if nobody decided; else 1, 0 or - (sampled, not, undecided) and the submitter's traceparent.
ALTER TABLE headway.tasks ADD COLUMN trace text NOT NULL DEFAULT '';

-- One row a task whose spans are owed: of the versions after `sent` and up to `version`. Written in
-- the commit that makes them due and gone once whoever collects them has confirmed them; the row of
-- a task that goes on stays, with what was sent. `due_at`: when a coordinator may take it up.
CREATE TABLE headway.owed_spans (
    task_id uuid PRIMARY KEY,
    version integer NOT NULL,
    sent integer NOT NULL,
    due_at timestamptz NOT NULL,
    since timestamptz NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX owed_spans_due ON headway.owed_spans (due_at) WHERE version > sent;
