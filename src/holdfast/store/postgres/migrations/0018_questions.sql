-- Raises the minimum schema.
-- Questions to people: an older server would not withdraw the question of a task that it ends.
ALTER TABLE tasks ADD COLUMN answered text COLLATE "C";
CREATE TABLE questions (
    account     text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    changed_at  bigint NOT NULL,
    task        text COLLATE "C" NOT NULL,
    task_type   text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    text        text COLLATE "C" NOT NULL,
    choices     text COLLATE "C" NOT NULL,
    on_timeout  text COLLATE "C",
    asked_at    bigint NOT NULL,
    deadline_at bigint,
    worker      text COLLATE "C",
    attempt     bigint NOT NULL,
    state       text COLLATE "C" NOT NULL,
    answer      text COLLATE "C",
    reason      text COLLATE "C",
    answered_by text COLLATE "C",
    answered_at bigint,
    PRIMARY KEY (account, id)
);
CREATE INDEX questions_open ON questions (account, asked_at, id) WHERE state = 'open';
CREATE INDEX questions_closed ON questions (account, asked_at, id) WHERE state <> 'open';
CREATE INDEX questions_due ON questions (deadline_at) WHERE state = 'open' AND deadline_at IS NOT NULL;
-- A question is removed with its task.
CREATE INDEX questions_of_task ON questions (account, task);
