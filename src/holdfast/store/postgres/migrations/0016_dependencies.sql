-- Raises the minimum schema.
-- Tasks that depend on others: an older server would complete a task without freeing those that wait for it.
ALTER TABLE tasks ADD COLUMN unmet_flags text COLLATE "C";
ALTER TABLE tasks ADD COLUMN awaited boolean NOT NULL DEFAULT FALSE;
ALTER TABLE tasks ADD COLUMN releasing text COLLATE "C";
-- Finished tasks with dependents that have not learned of it.
CREATE INDEX tasks_releasing ON tasks (changed_at) WHERE releasing IS NOT NULL;
-- Which tasks depend on a task; the rows of the dependent ones have the same in `depends_on`.
CREATE TABLE task_dependencies (
    account   text COLLATE "C" NOT NULL,
    needed    text COLLATE "C" NOT NULL,
    dependent text COLLATE "C" NOT NULL,
    PRIMARY KEY (account, needed, dependent)
);
