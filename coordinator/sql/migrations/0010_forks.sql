-- Which task was forked from which: written before the new task is submitted, so that no fork goes
-- unnoticed; what was never accepted is not shown.

CREATE TABLE headway.forks (
    id uuid PRIMARY KEY,    -- the new task
    origin uuid NOT NULL,   -- the task whose results it keeps
    step text NOT NULL,     -- the first one that it does anew
    at timestamptz NOT NULL,
    by text NOT NULL,
    reason text NOT NULL
);

CREATE INDEX forks_origin ON headway.forks (origin, id);

CREATE INDEX forks_at ON headway.forks (at);

DROP INDEX headway.task_events_acts;

CREATE INDEX task_events_acts ON headway.task_events (at) WHERE type IN (
    'RecoveryStarted', 'TaskResumed', 'StepSettled', 'StepApproved', 'StepRejected',
    'SignalReceived', 'TaskHeld', 'TaskMoved', 'TaskForked'
);

CREATE OR REPLACE VIEW headway.audit_of_history AS
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
           'version ' || headway.text_of(e.data, 'target'),
           'task ' || headway.text_of(e.data, 'origin'),
           ''
       ) AS what,
       coalesce(headway.text_of(e.data, 'reason'), '') AS reason,
       e.data
FROM headway.task_events AS e
WHERE e.type IN (
        'RecoveryStarted', 'TaskResumed', 'StepSettled', 'StepApproved', 'StepRejected',
        'SignalReceived', 'TaskHeld', 'TaskMoved', 'TaskForked'
    )
  AND (
        e.type <> 'RecoveryStarted'
        OR headway.text_of(e.data, 'by') <> ''
        OR headway.text_of(e.data, 'step') IS NULL  -- not for a step that failed
    );

-- What was forked from a task, in the audit of that task.
CREATE OR REPLACE VIEW headway.audit_of_acts AS
SELECT a.at,
       a.task_id,
       'act/' || lpad(a.id::text, 19, '0') AS id,
       '' AS step,
       a.kind,
       a.who,
       a.what,
       a.reason,
       a.data
FROM headway.acts AS a
UNION ALL
SELECT f.at,
       f.origin AS task_id,
       'fork/' || f.id::text AS id,
       f.step,
       'fork' AS kind,
       f.by AS who,
       'task ' || f.id::text AS what,
       f.reason,
       json_build_object('task', f.id) AS data
FROM headway.forks AS f
WHERE EXISTS (SELECT FROM headway.tasks AS t WHERE t.id = f.id);
