-- Raises the minimum schema.
-- Questions to people: an older server would not withdraw the question of a task that it ends.
ALTER TABLE tasks ADD COLUMN answered TEXT;
CREATE TABLE questions (
    account     TEXT NOT NULL,
    id          TEXT NOT NULL,
    version     INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    task        TEXT NOT NULL,
    task_type   TEXT NOT NULL,
    kind        TEXT NOT NULL,
    text        TEXT NOT NULL,
    choices     TEXT NOT NULL,
    on_timeout  TEXT,
    asked_at    INTEGER NOT NULL,
    deadline_at INTEGER,
    worker      TEXT,
    attempt     INTEGER NOT NULL,
    state       TEXT NOT NULL,
    answer      TEXT,
    reason      TEXT,
    answered_by TEXT,
    answered_at INTEGER,
    PRIMARY KEY (account, id)
) STRICT;
CREATE INDEX questions_open ON questions (account, asked_at, id) WHERE state = 'open';
CREATE INDEX questions_closed ON questions (account, asked_at, id) WHERE state <> 'open';
CREATE INDEX questions_due ON questions (deadline_at) WHERE state = 'open' AND deadline_at IS NOT NULL;
-- A question is removed with its task.
CREATE INDEX questions_of_task ON questions (account, task);

-- What the planner assumes, as for the other indexes.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('questions', 'sqlite_autoindex_questions_1', '1000000 1000000 1'),
    ('questions', 'questions_open', '10000 1000 2 1'),
    ('questions', 'questions_closed', '1000000 100000 2 1'),
    ('questions', 'questions_due', '10000 1'),
    ('questions', 'questions_of_task', '1000000 100000 2');
ANALYZE sqlite_schema;
