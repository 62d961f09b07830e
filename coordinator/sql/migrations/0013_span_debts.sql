-- Which spans are still to be sent: one row for all the tasks of a commit that makes some due.
--
-- Of each task, what its history from the version that was read to the new one makes due. Written in
-- the commit and gone once whoever collects spans has confirmed them. `due_at`: when a coordinator
-- may take it up. What coordinators of an earlier release note in owed_spans is taken over from there.
CREATE TABLE headway.span_debts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tasks uuid[] NOT NULL,
    reads integer[] NOT NULL,
    versions integer[] NOT NULL,
    due_at timestamptz NOT NULL,
    since timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX span_debts_due ON headway.span_debts (due_at);
