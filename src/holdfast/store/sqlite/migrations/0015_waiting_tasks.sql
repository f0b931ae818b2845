-- Raises the minimum schema.
-- Tasks that wait for other tasks or for a person: an older server would enqueue them when it changes them.
ALTER TABLE tasks ADD COLUMN waits_for TEXT;
ALTER TABLE tasks ADD COLUMN planned_at INTEGER;
ALTER TABLE tasks ADD COLUMN unmet INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN question TEXT;
-- Conditions of a task: which tasks come first, which workers may have it, what may run beside it, and when it ends.
ALTER TABLE tasks ADD COLUMN depends_on TEXT;
ALTER TABLE tasks ADD COLUMN on_dependency_failure TEXT;
ALTER TABLE tasks ADD COLUMN requires TEXT;
ALTER TABLE tasks ADD COLUMN concurrency_key TEXT;
ALTER TABLE tasks ADD COLUMN deadline_at INTEGER;
ALTER TABLE tasks ADD COLUMN max_run INTEGER;
ALTER TABLE tasks ADD COLUMN run_until INTEGER;
CREATE INDEX tasks_deadline ON tasks (deadline_at) WHERE state = 'pending' AND deadline_at IS NOT NULL;
-- Which tasks wait for what.
CREATE INDEX tasks_waiting ON tasks (account, waits_for, id) WHERE waits_for IS NOT NULL;
