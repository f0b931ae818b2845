-- Tasks and how many there are, accounts, and sessions that survive their process.

CREATE TABLE tasks (
    account          TEXT NOT NULL,
    id               TEXT NOT NULL,
    version          INTEGER NOT NULL,
    changed_at       INTEGER NOT NULL,
    type             TEXT NOT NULL,
    payload          TEXT NOT NULL,
    priority         INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    lease_duration   INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    unique_key       TEXT,
    tag              TEXT,
    created_by       TEXT,
    reviewed_by      TEXT,
    source           TEXT,
    backoff          TEXT,
    state            TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'completed', 'dead_letter', 'cancelled')),
    ready            INTEGER NOT NULL,
    scheduled_at     INTEGER,
    place            INTEGER NOT NULL,
    attempt_count    INTEGER NOT NULL DEFAULT 0,
    attempt          INTEGER NOT NULL DEFAULT 0,
    worker           TEXT,
    principal        TEXT,
    session          TEXT,
    proof            TEXT,
    token            INTEGER NOT NULL DEFAULT 0,
    claimed_at       INTEGER,
    expires_at       INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    result           TEXT,
    output_id        TEXT,
    failure_reason   TEXT,
    dead_cause       TEXT,
    resolved_at      INTEGER,
    ended            TEXT,
    ended_checkpoint TEXT,
    note             TEXT,
    checkpoint       TEXT,
    progress         TEXT,
    PRIMARY KEY (account, id)
) STRICT;
-- The queue: what anybody may have now, in the order in which it is claimed. Work for tomorrow is not in it.
CREATE INDEX tasks_ready ON tasks (account, type, priority DESC, place, id) WHERE ready;
-- The same over all types. Spelled otherwise, so that nobody takes it for the one above.
CREATE INDEX tasks_ready_any ON tasks (account, (-priority), place, id) WHERE ready;
CREATE INDEX tasks_ripe ON tasks (account, type, scheduled_at) WHERE state = 'pending' AND NOT ready;
CREATE INDEX tasks_scheduled ON tasks (scheduled_at) WHERE state = 'pending' AND NOT ready;
CREATE INDEX tasks_due ON tasks (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX tasks_listed ON tasks (account, type, state, id);
CREATE INDEX tasks_tagged ON tasks (account, tag, id) WHERE tag IS NOT NULL;
CREATE INDEX tasks_keyed ON tasks (account, unique_key, id) WHERE unique_key IS NOT NULL;
CREATE UNIQUE INDEX tasks_one_live ON tasks (account, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('pending', 'claimed');
CREATE INDEX tasks_of_session ON tasks (account, session) WHERE session IS NOT NULL;
CREATE INDEX tasks_finished ON tasks (account, changed_at) WHERE state IN ('completed', 'dead_letter', 'cancelled');
-- What is final stays so, whatever a program tries; dead letters leave by requeueing alone (a batch may do that and
-- more at once, but every step counts the version up by one).
CREATE TRIGGER tasks_final BEFORE UPDATE OF state ON tasks
    WHEN (OLD.state IN ('completed', 'cancelled') AND NEW.state <> OLD.state)
        OR (OLD.state = 'dead_letter' AND NEW.state NOT IN ('dead_letter', 'pending') AND NEW.version < OLD.version + 2)
        OR NEW.attempt < OLD.attempt
    BEGIN SELECT RAISE(ABORT, 'a finished task never changes its state'); END;

-- How many tasks of a type are in a state: counted as they change, so that nobody has to count a million rows.
CREATE TABLE task_counts (
    account TEXT NOT NULL,
    type    TEXT NOT NULL,
    state   TEXT NOT NULL,
    total   INTEGER NOT NULL,
    PRIMARY KEY (account, type, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
    account          TEXT NOT NULL,
    id               TEXT NOT NULL,
    version          INTEGER NOT NULL,
    changed_at       INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    require_lease_id INTEGER NOT NULL,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

ALTER TABLE sessions ADD COLUMN name TEXT;
ALTER TABLE sessions ADD COLUMN secret TEXT;
ALTER TABLE sessions ADD COLUMN proof TEXT;
ALTER TABLE sessions ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turn INTEGER;
ALTER TABLE sessions ADD COLUMN last_action TEXT;
ALTER TABLE sessions ADD COLUMN next_action TEXT;
ALTER TABLE sessions ADD COLUMN context_hash TEXT;
ALTER TABLE sessions ADD COLUMN memory_ref TEXT;
ALTER TABLE sessions ADD COLUMN context TEXT;
ALTER TABLE sessions ADD COLUMN context_version INTEGER NOT NULL DEFAULT 0;

-- Up to which event retention has removed the log; nothing above may ever go.
ALTER TABLE event_counters ADD COLUMN floor INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER events_stay BEFORE DELETE ON events
    WHEN OLD.seq > coalesce((SELECT floor FROM event_counters WHERE account = OLD.account), 0)
    BEGIN SELECT RAISE(ABORT, 'events are removed by retention alone'); END;
-- REPLACE removes without asking the trigger above.
CREATE TRIGGER events_never_replaced BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE account = NEW.account AND seq = NEW.seq)
    BEGIN SELECT RAISE(ABORT, 'events never change'); END;
