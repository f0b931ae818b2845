-- Raises the minimum schema.
-- Tasks that require capabilities, and queues with limits: an older server would give them to anybody.
ALTER TABLE sessions ADD COLUMN capabilities text COLLATE "C";
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
CREATE INDEX tasks_requiring_order ON tasks (account, type, priority DESC, place, id)
    INCLUDE (requires, concurrency_key)
    WHERE ready AND requires IS NOT NULL;
CREATE INDEX tasks_requiring_order_any ON tasks (account, (-priority), place, id) INCLUDE (requires, priority)
    WHERE ready AND requires IS NOT NULL;
-- The order of those with a concurrency key that require nothing.
CREATE INDEX tasks_with_key_order ON tasks (account, type, priority DESC, place, id) INCLUDE (concurrency_key)
    WHERE ready AND requires IS NULL AND concurrency_key IS NOT NULL;
-- The queues of each set of required words and each key.
CREATE INDEX tasks_grouped ON tasks (account, type, coalesce(requires, ''), coalesce(concurrency_key, ''), priority DESC,
    place, id) WHERE ready AND (requires IS NOT NULL OR concurrency_key IS NOT NULL);
-- How many tasks of each key run.
CREATE INDEX tasks_running_keys ON tasks (account, type, concurrency_key)
    WHERE state = 'claimed' AND concurrency_key IS NOT NULL;

-- The settings of queues.
CREATE TABLE queues (
    account     text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    changed_at  bigint NOT NULL,
    paused      boolean NOT NULL DEFAULT false,
    max_running bigint,
    max_running_per_key bigint,
    PRIMARY KEY (account, id)
);
