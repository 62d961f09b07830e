-- A task that is moved to another version of its saga is an act of a person like any other.

DROP INDEX headway.task_events_acts;

CREATE INDEX task_events_acts ON headway.task_events (at) WHERE type IN (
    'RecoveryStarted', 'TaskResumed', 'StepSettled', 'StepApproved', 'StepRejected',
    'SignalReceived', 'TaskHeld', 'TaskMoved'
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
           ''
       ) AS what,
       coalesce(headway.text_of(e.data, 'reason'), '') AS reason,
       e.data
FROM headway.task_events AS e
WHERE e.type IN (
        'RecoveryStarted', 'TaskResumed', 'StepSettled', 'StepApproved', 'StepRejected',
        'SignalReceived', 'TaskHeld', 'TaskMoved'
    )
  AND (
        e.type <> 'RecoveryStarted'
        OR headway.text_of(e.data, 'by') <> ''
        OR headway.text_of(e.data, 'step') IS NULL  -- not for a step that failed
    );
