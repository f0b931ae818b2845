-- Raises the minimum schema.
-- Tasks that require capabilities, and queues with limits: an older server would give them to anybody.
ALTER TABLE sessions ADD COLUMN capabilities TEXT;
-- The queue of those that require none and have no concurrency key, and the queues of each set of required words.
DROP INDEX tasks_ready;
DROP INDEX tasks_ready_any;
CREATE INDEX tasks_ready ON tasks (account, type, priority DESC, place, id)
    WHERE ready AND requires IS NULL AND concurrency_key IS NULL;
CREATE INDEX tasks_ready_any ON tasks (account, (-priority), place, id) WHERE ready AND requires IS NULL;
CREATE INDEX tasks_requiring ON tasks (account, type, requires, priority DESC, place, id)
    WHERE ready AND requires IS NOT NULL;
CREATE INDEX tasks_requiring_any ON tasks (account, requires, (-priority), place, id)
    WHERE ready AND requires IS NOT NULL;
-- The order of those that require something, whatever it is.
CREATE INDEX tasks_requiring_order ON tasks (account, type, priority DESC, place, id, requires, concurrency_key)
    WHERE ready AND requires IS NOT NULL;
CREATE INDEX tasks_requiring_order_any ON tasks (account, (-priority), place, id, requires)
    WHERE ready AND requires IS NOT NULL;
-- The order of those with a concurrency key that require nothing.
CREATE INDEX tasks_with_key_order ON tasks (account, type, priority DESC, place, id, concurrency_key)
    WHERE ready AND requires IS NULL AND concurrency_key IS NOT NULL;
-- The queues of each set of required words and each key.
CREATE INDEX tasks_grouped ON tasks (account, type, coalesce(requires, ''), coalesce(concurrency_key, ''), priority DESC,
    place, id) WHERE ready AND (requires IS NOT NULL OR concurrency_key IS NOT NULL);
-- How many tasks of each key run.
CREATE INDEX tasks_running_keys ON tasks (account, type, concurrency_key)
    WHERE state = 'claimed' AND concurrency_key IS NOT NULL;

-- The settings of queues.
CREATE TABLE queues (
    account     TEXT NOT NULL,
    id          TEXT NOT NULL,
    version     INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    paused      INTEGER NOT NULL DEFAULT 0,
    max_running INTEGER,
    max_running_per_key INTEGER,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- What the planner assumes, as for the other indexes.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('tasks', 'tasks_ready', '10000 10000 1000 100 2 1'),
    ('tasks', 'tasks_ready_any', '10000 10000 100 2 1'),
    ('tasks', 'tasks_requiring', '10000 10000 1000 100 10 2 1'),
    ('tasks', 'tasks_requiring_any', '10000 10000 100 10 2 1'),
    ('tasks', 'tasks_requiring_order', '10000 10000 1000 100 2 1 1 1'),
    ('tasks', 'tasks_requiring_order_any', '10000 10000 100 2 1 1'),
    ('tasks', 'tasks_with_key_order', '10000 10000 1000 100 2 1 1'),
    ('tasks', 'tasks_grouped', '10000 10000 1000 100 10 5 2 1'),
    ('tasks', 'tasks_running_keys', '1000 1000 100 2'),
    ('queues', 'queues', '1000 10 1');
ANALYZE sqlite_schema;
