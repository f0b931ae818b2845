-- Raises the minimum schema.
-- Tasks that wait for other tasks or for a person: an older server would enqueue them when it changes them.
ALTER TABLE tasks ADD COLUMN waits_for text COLLATE "C";
ALTER TABLE tasks ADD COLUMN planned_at bigint;
ALTER TABLE tasks ADD COLUMN unmet bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN question text COLLATE "C";
-- Conditions of a task: which tasks come first, which workers may have it, what may run beside it, and when it ends.
ALTER TABLE tasks ADD COLUMN depends_on text COLLATE "C";
ALTER TABLE tasks ADD COLUMN on_dependency_failure text COLLATE "C";
ALTER TABLE tasks ADD COLUMN requires text COLLATE "C";
ALTER TABLE tasks ADD COLUMN concurrency_key text COLLATE "C";
ALTER TABLE tasks ADD COLUMN deadline_at bigint;
ALTER TABLE tasks ADD COLUMN max_run bigint;
ALTER TABLE tasks ADD COLUMN run_until bigint;
CREATE INDEX tasks_deadline ON tasks (deadline_at) WHERE state = 'pending' AND deadline_at IS NOT NULL;
-- Which tasks wait for what.
CREATE INDEX tasks_waiting ON tasks (account, waits_for, id) WHERE waits_for IS NOT NULL;
