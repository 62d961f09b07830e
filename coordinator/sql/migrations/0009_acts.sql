-- What people did beside tasks, for the audit; what became of dead letters; webhooks.

-- Limits, pauses, keys, tokens, webhooks, dead letters: each act is written by the statement that
-- carries it out. `task_id` is the nil UUID for what is about no task.
CREATE TABLE headway.acts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    task_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    kind text NOT NULL,
    who text NOT NULL,
    what text NOT NULL,
    reason text NOT NULL DEFAULT '',
    data json NOT NULL DEFAULT '{}'
);

CREATE INDEX acts_at ON headway.acts (at);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON headway.acts
FOR EACH ROW EXECUTE FUNCTION headway.refuse_change();

CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON headway.acts
FOR EACH STATEMENT EXECUTE FUNCTION headway.refuse_change();

CREATE VIEW headway.audit_of_acts AS
SELECT a.at,
       a.task_id,
       'act/' || lpad(a.id::text, 19, '0') AS id,
       '' AS step,
       a.kind,
       a.who,
       a.what,
       a.reason,
       a.data
FROM headway.acts AS a;

CREATE OR REPLACE VIEW headway.audit AS
SELECT at, task_id, id, step, kind, who, what, reason, data FROM headway.audit_of_history
UNION ALL
SELECT at, task_id, id, step, kind, who, what, reason, data FROM headway.audit_of_journal
UNION ALL
SELECT at, task_id, id, step, kind, who, what, reason, data FROM headway.audit_of_gates
UNION ALL
SELECT at, task_id, id, step, kind, who, what, reason, data FROM headway.audit_of_acts;

-- The letters of HW_DEAD that a person has dealt with. Their stream keeps them, and nobody can take
-- one out of it; `stream_created` tells one incarnation of the stream from another.
CREATE TABLE headway.dead_letters (
    stream_created text NOT NULL,
    sequence bigint NOT NULL,
    fate text NOT NULL CHECK (
        fate IN (
            'replaying',  -- is being published again, or was, and nobody noted it -> replayed
            'replayed',
            'dropped'
        )
    ),
    at timestamptz NOT NULL,
    by text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (stream_created, sequence)
);

-- Where other systems send signals. The secret of each is derived from the one that commands are
-- signed with, its name and its salt.
CREATE TABLE headway.webhooks (
    name text PRIMARY KEY,
    salt bytea NOT NULL CHECK (length(salt) = 16),
    saga text NOT NULL,     -- '' for any
    task text NOT NULL,     -- where the task's id stands in a delivery
    signal text NOT NULL,   -- where the signal's name stands, or the name
    payload text NOT NULL,  -- where in the body the payload stands
    created_at timestamptz NOT NULL,
    created_by text NOT NULL
);

-- What was taken from a webhook lately: a delivery that comes again is known by its id.
CREATE TABLE headway.webhook_deliveries (
    webhook text NOT NULL REFERENCES headway.webhooks (name) ON DELETE CASCADE,
    id text NOT NULL,
    task_id uuid NOT NULL,
    signal text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (webhook, id)
);

CREATE INDEX webhook_deliveries_at ON headway.webhook_deliveries (at);
