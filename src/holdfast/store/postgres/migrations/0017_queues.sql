-- Raises the minimum schema.
-- Tasks that require capabilities, and queues with limits: an older server would give them to anybody.
ALTER TABLE sessions ADD COLUMN capabilities text COLLATE "C";
-- The queue of those that require none, and the queues of each set of required words.
DROP INDEX tasks_ready;
DROP INDEX tasks_ready_any;
CREATE INDEX tasks_ready ON tasks (account, type, priority DESC, place, id) WHERE ready AND requires IS NULL;
CREATE INDEX tasks_ready_any ON tasks (account, (-priority), place, id) WHERE ready AND requires IS NULL;
CREATE INDEX tasks_requiring ON tasks (account, type, requires, priority DESC, place, id)
    WHERE ready AND requires IS NOT NULL;
CREATE INDEX tasks_requiring_any ON tasks (account, requires, (-priority), place, id)
    WHERE ready AND requires IS NOT NULL;
-- The order of those that require something, whatever it is.
CREATE INDEX tasks_requiring_order ON tasks (account, type, priority DESC, place, id) INCLUDE (requires)
    WHERE ready AND requires IS NOT NULL;
CREATE INDEX tasks_requiring_order_any ON tasks (account, (-priority), place, id) INCLUDE (requires, priority)
    WHERE ready AND requires IS NOT NULL;

-- The settings of queues.
CREATE TABLE queues (
    account     text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    changed_at  bigint NOT NULL,
    paused      boolean NOT NULL DEFAULT false,
    max_running bigint,
    PRIMARY KEY (account, id)
);
