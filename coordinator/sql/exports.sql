-- Statements about whole records of tasks, by name.

-- name: journals_of_task
-- The journals of task $1.
SELECT step, phase FROM headway.journals WHERE task_id = $1::uuid ORDER BY step, phase;
