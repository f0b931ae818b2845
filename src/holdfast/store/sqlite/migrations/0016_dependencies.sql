-- Raises the minimum schema.
-- Tasks that depend on others: an older server would complete a task without freeing those that wait for it.
ALTER TABLE tasks ADD COLUMN unmet_flags TEXT;
ALTER TABLE tasks ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN releasing TEXT;
-- Finished tasks with dependents that have not learned of it.
CREATE INDEX tasks_releasing ON tasks (changed_at) WHERE releasing IS NOT NULL;
-- Which tasks depend on a task; the rows of the dependent ones have the same in `depends_on`.
CREATE TABLE task_dependencies (
    account   TEXT NOT NULL,
    needed    TEXT NOT NULL,
    dependent TEXT NOT NULL,
    PRIMARY KEY (account, needed, dependent)
) STRICT, WITHOUT ROWID;
-- What the planner assumes, as for the other indexes.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('tasks', 'tasks_releasing', '10 1'),
    ('task_dependencies', 'task_dependencies', '1000000 1000000 10 1');
