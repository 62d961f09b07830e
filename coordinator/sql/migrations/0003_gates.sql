-- Gates: calls of sensitive tools, the tokens given for them, and the people who decided on them.

-- The key that tokens are signed with: one row, made by the first coordinator that needs it.
CREATE TABLE headway.signing_keys (
    number integer PRIMARY KEY CHECK (number = 1),
    seed bytea NOT NULL CHECK (length(seed) = 32),
    made_at timestamptz NOT NULL
);

-- One row a call. `token` is the newest one given for it: older ones are not good any more.
CREATE TABLE headway.gates (
    task_id uuid NOT NULL REFERENCES headway.tasks (id) ON DELETE CASCADE,
    invocation uuid NOT NULL,
    step text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('action', 'compensation')),
    key text NOT NULL,
    tool text NOT NULL,
    arguments_digest text NOT NULL,
    status text NOT NULL CHECK (
        status IN (
            'open',      -- nobody needs to approve -> waiting
            'waiting',   -- for a person -> approved | rejected
            'approved',
            'rejected'
        )
    ),
    since timestamptz NOT NULL,
    decided_at timestamptz,
    decided_by text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    token uuid,
    PRIMARY KEY (task_id, invocation),
    CHECK ((decided_at IS NOT NULL) = (status IN ('approved', 'rejected')))
);

CREATE INDEX gates_waiting ON headway.gates (since, task_id, invocation) WHERE status = 'waiting';

-- What happened at gates, partitioned as the history is. That a token was redeemed is its row here.
CREATE SEQUENCE headway.gate_events_id AS bigint;

CREATE TABLE headway.gate_events (
    id bigint NOT NULL DEFAULT nextval('headway.gate_events_id'),
    task_id uuid NOT NULL,
    step text NOT NULL,
    kind text NOT NULL CHECK (
        kind IN ('requested', 'approved', 'rejected', 'issued', 'redeemed', 'refused')
    ),
    at timestamptz NOT NULL,
    who text NOT NULL,
    tool text NOT NULL,
    reason text NOT NULL,
    token uuid,
    use uuid,  -- of the token, chosen by whoever redeemed it
    data json NOT NULL,
    PRIMARY KEY (task_id, id)
) PARTITION BY RANGE (task_id);

CREATE UNIQUE INDEX gate_events_redeemed ON headway.gate_events (task_id, token)
WHERE kind = 'redeemed';
CREATE INDEX gate_events_at ON headway.gate_events (at);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON headway.gate_events
FOR EACH ROW EXECUTE FUNCTION headway.refuse_change();

CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON headway.gate_events
FOR EACH STATEMENT EXECUTE FUNCTION headway.refuse_change();

-- A partition of the gates' events: `bounds` as after PARTITION OF.
CREATE FUNCTION headway.make_gate_partition(name text, bounds text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('CREATE TABLE headway.%I PARTITION OF headway.gate_events %s', name, bounds);
    EXECUTE format(
        'CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON headway.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION headway.refuse_change()',
        name
    );
END
$$;

SELECT headway.make_gate_partition('gate_events_other', 'DEFAULT');

-- Make the partitions of this month and the `months` after it, where they are missing.
CREATE FUNCTION headway.ensure_gate_partitions(moment timestamptz, months integer)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    first_day timestamp;
    name text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headway.ensure_gate_partitions'));
    FOR ahead IN 0..months LOOP
        first_day := date_trunc('month', moment AT TIME ZONE 'UTC') + make_interval(months => ahead);
        name := 'gate_events_' || to_char(first_day, 'YYYY_MM');
        IF to_regclass('headway.' || name) IS NULL THEN
            PERFORM headway.make_gate_partition(name, format(
                'FOR VALUES FROM (%L) TO (%L)',
                headway.uuid7_floor(first_day AT TIME ZONE 'UTC'),
                headway.uuid7_floor((first_day + interval '1 month') AT TIME ZONE 'UTC')
            ));
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END
$$;

CREATE VIEW headway.audit_of_gates AS
SELECT g.at,
       g.task_id,
       'gate/' || lpad(g.id::text, 19, '0') AS id,
       g.step,
       'gate-' || g.kind AS kind,
       g.who,
       g.tool AS what,
       g.reason,
       g.data
FROM headway.gate_events AS g;

-- The whole audit log.
CREATE VIEW headway.audit AS
SELECT at, task_id, id, step, kind, who, what, reason, data FROM headway.audit_of_history
UNION ALL
SELECT at, task_id, id, step, kind, who, what, reason, data FROM headway.audit_of_journal
UNION ALL
SELECT at, task_id, id, step, kind, who, what, reason, data FROM headway.audit_of_gates;
