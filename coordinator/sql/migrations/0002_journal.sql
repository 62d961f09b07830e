-- Journals: what the agents' steps did, call by call, and the audit log that is read from them.

-- One row a journal, that is one (task, step, phase): where it stands. Whoever appends must hold
-- `epoch` and give the next `seq`; both are checked in the statement that writes. The guards' memory
-- (`trail`, `failures`) and the calls whose end is not known (`unsettled`) stand here too, so that
-- an append reads one row. `input_tokens`, `output_tokens` and `cost_usd` are this journal's share.
CREATE TABLE headway.journals (
    task_id uuid NOT NULL REFERENCES headway.tasks (id) ON DELETE CASCADE,
    step text NOT NULL,
    phase text NOT NULL CHECK (phase IN ('action', 'compensation')),
    epoch integer NOT NULL CHECK (epoch > 0),
    seq integer NOT NULL CHECK (seq >= 0),
    attempt integer NOT NULL,        -- of the one who opened it last
    command_epoch integer NOT NULL,  -- likewise
    agent text NOT NULL,
    worker text NOT NULL,            -- '' when nobody holds it
    undoing boolean NOT NULL,        -- the step's compensation was begun: no further call
    resumed integer NOT NULL,        -- version of the task's last resumption, as known at the opening
    failures integer NOT NULL,       -- of tools, in a row
    trail json NOT NULL,             -- the last calls, oldest first
    unsettled json NOT NULL,         -- by key
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_usd numeric NOT NULL,
    PRIMARY KEY (task_id, step, phase)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The entries. Partitioned as the history is, so that both are dropped by the same months.
-- `data` is the value as it came; `meta` what is told of it: digests, sizes, usage, times.
CREATE TABLE headway.journal_entries (
    task_id uuid NOT NULL,
    step text NOT NULL,
    phase text NOT NULL,
    seq integer NOT NULL,
    epoch integer NOT NULL,
    kind text NOT NULL CHECK (kind IN ('intent', 'result', 'failure', 'checkpoint', 'note', 'void')),
    key text NOT NULL,
    tool text NOT NULL,
    agent text NOT NULL,
    by text NOT NULL,      -- the person who wrote it, if it was not the agent
    reason text NOT NULL,
    at timestamptz NOT NULL,
    bytes integer NOT NULL,  -- of `data`
    meta json NOT NULL,
    data json,
    PRIMARY KEY (task_id, step, phase, seq)
) PARTITION BY RANGE (task_id);

CREATE INDEX journal_entries_at ON headway.journal_entries (at);

-- For tables whose rows, once written, stay as they are.
CREATE FUNCTION headway.refuse_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION '% of %: it is append-only; old months are dropped whole, with their partition',
        TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON headway.journal_entries
FOR EACH ROW EXECUTE FUNCTION headway.refuse_change();

CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON headway.journal_entries
FOR EACH STATEMENT EXECUTE FUNCTION headway.refuse_change();

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON headway.task_events
FOR EACH ROW EXECUTE FUNCTION headway.refuse_change();

CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON headway.task_events
FOR EACH STATEMENT EXECUTE FUNCTION headway.refuse_change();

-- A partition of the journal: `bounds` as after PARTITION OF. Triggers on TRUNCATE are not
-- inherited, so each partition gets its own.
CREATE FUNCTION headway.make_journal_partition(name text, bounds text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format(
        'CREATE TABLE headway.%I PARTITION OF headway.journal_entries %s', name, bounds
    );
    EXECUTE format(
        'CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON headway.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION headway.refuse_change()',
        name
    );
END
$$;

SELECT headway.make_journal_partition('journal_entries_other', 'DEFAULT');

-- Make the journal's partitions of this month and the `months` after it, where they are missing.
CREATE FUNCTION headway.ensure_journal_partitions(moment timestamptz, months integer)
RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    first_day timestamp;
    name text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('headway.ensure_journal_partitions'));
    FOR ahead IN 0..months LOOP
        first_day := date_trunc('month', moment AT TIME ZONE 'UTC') + make_interval(months => ahead);
        name := 'journal_entries_' || to_char(first_day, 'YYYY_MM');
        IF to_regclass('headway.' || name) IS NULL THEN
            PERFORM headway.make_journal_partition(name, format(
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

-- The text of a field of a JSON object; PostgreSQL alone would fail on an object with \u0000 in it.
CREATE FUNCTION headway.text_of(object json, field text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
AS $$
    SELECT replace(object::text, '\u0000', '\ufffd')::json ->> field
$$;

-- What a person did to a task, or what was stopped until a person has looked.
CREATE INDEX task_events_acts ON headway.task_events (at) WHERE type IN (
    'RecoveryStarted', 'TaskResumed', 'StepSettled', 'StepApproved', 'StepRejected',
    'SignalReceived', 'TaskHeld'
);

-- Who did what, when and why: every tool call and every act of a person. All of it is read from
-- tables that are only ever appended to. `id` is an entry's place within its task. Pages are read
-- from each part along its own index on `at`; see the statement `audit`.
CREATE VIEW headway.audit_of_history AS
SELECT e.at,
       e.task_id,
       'history/' || lpad(e.version::text, 10, '0') AS id,
       coalesce(headway.text_of(e.data, 'step'), '') AS step,
       e.type AS kind,
       coalesce(headway.text_of(e.data, 'by'), '') AS who,
       coalesce(
           headway.text_of(e.data, 'name'),
           headway.text_of(e.data, 'kind'),
           headway.text_of(e.data, 'status'),
           ''
       ) AS what,
       coalesce(headway.text_of(e.data, 'reason'), '') AS reason,
       e.data
FROM headway.task_events AS e
WHERE e.type IN (
        'RecoveryStarted', 'TaskResumed', 'StepSettled', 'StepApproved', 'StepRejected',
        'SignalReceived', 'TaskHeld'
    )
  AND (
        e.type <> 'RecoveryStarted'
        OR headway.text_of(e.data, 'by') <> ''
        OR headway.text_of(e.data, 'step') IS NULL  -- not for a step that failed
    );

CREATE VIEW headway.audit_of_journal AS
SELECT j.at,
       j.task_id,
       'journal/' || j.step || '/' || j.phase || '/' || lpad(j.seq::text, 10, '0') AS id,
       j.step,
       j.kind,
       CASE WHEN j.by = '' THEN j.agent ELSE j.by END AS who,
       CASE WHEN j.tool = '' THEN j.key ELSE j.tool END AS what,
       j.reason,
       (
           jsonb_build_object('phase', j.phase, 'seq', j.seq, 'epoch', j.epoch, 'key', j.key)
           || j.meta::jsonb
       )::json AS data
FROM headway.journal_entries AS j
WHERE j.kind <> 'checkpoint';
