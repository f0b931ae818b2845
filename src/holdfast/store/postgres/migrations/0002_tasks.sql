-- Tasks and how many there are, accounts, and sessions that survive their process.

CREATE TABLE tasks (
    account          text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    version          bigint NOT NULL,
    changed_at       bigint NOT NULL,
    type             text COLLATE "C" NOT NULL,
    payload          text COLLATE "C" NOT NULL,
    priority         bigint NOT NULL,
    max_attempts     bigint NOT NULL,
    lease_duration   bigint NOT NULL,
    created_at       bigint NOT NULL,
    unique_key       text COLLATE "C",
    tag              text COLLATE "C",
    created_by       text COLLATE "C",
    reviewed_by      text COLLATE "C",
    source           text COLLATE "C",
    backoff          text COLLATE "C",
    state            text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'claimed', 'completed', 'dead_letter', 'cancelled')),
    ready            boolean NOT NULL,
    scheduled_at     bigint,
    place            bigint NOT NULL,
    attempt_count    bigint NOT NULL DEFAULT 0,
    attempt          bigint NOT NULL DEFAULT 0,
    worker           text COLLATE "C",
    principal        text COLLATE "C",
    session          text COLLATE "C",
    proof            text COLLATE "C",
    token            bigint NOT NULL DEFAULT 0,
    claimed_at       bigint,
    expires_at       bigint,
    cancel_requested boolean NOT NULL DEFAULT false,
    result           text COLLATE "C",
    output_id        text COLLATE "C",
    failure_reason   text COLLATE "C",
    dead_cause       text COLLATE "C",
    resolved_at      bigint,
    ended            text COLLATE "C",
    ended_checkpoint text COLLATE "C",
    note             text COLLATE "C",
    checkpoint       text COLLATE "C",
    progress         text COLLATE "C",
    PRIMARY KEY (account, id)
);
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
CREATE FUNCTION holdfast_tasks_final() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a finished task never changes its state'; END $$;
CREATE TRIGGER tasks_final BEFORE UPDATE OF state ON tasks FOR EACH ROW
    WHEN ((OLD.state IN ('completed', 'cancelled') AND NEW.state <> OLD.state)
        OR (OLD.state = 'dead_letter' AND NEW.state NOT IN ('dead_letter', 'pending') AND NEW.version < OLD.version + 2)
        OR NEW.attempt < OLD.attempt)
    EXECUTE FUNCTION holdfast_tasks_final();

-- How many tasks of a type are in a state: counted as they change, so that nobody has to count a million rows.
CREATE TABLE task_counts (
    account text COLLATE "C" NOT NULL,
    type    text COLLATE "C" NOT NULL,
    state   text COLLATE "C" NOT NULL,
    total   bigint NOT NULL,
    PRIMARY KEY (account, type, state)
) WITH (fillfactor = 50);

CREATE TABLE accounts (
    account          text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    version          bigint NOT NULL,
    changed_at       bigint NOT NULL,
    created_at       bigint NOT NULL,
    require_lease_id boolean NOT NULL,
    PRIMARY KEY (account, id)
);

ALTER TABLE sessions ADD COLUMN name text COLLATE "C";
ALTER TABLE sessions ADD COLUMN secret text COLLATE "C";
ALTER TABLE sessions ADD COLUMN proof text COLLATE "C";
ALTER TABLE sessions ADD COLUMN token bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN generation bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN lane boolean NOT NULL DEFAULT false;
ALTER TABLE sessions ADD COLUMN turn bigint;
ALTER TABLE sessions ADD COLUMN last_action text COLLATE "C";
ALTER TABLE sessions ADD COLUMN next_action text COLLATE "C";
ALTER TABLE sessions ADD COLUMN context_hash text COLLATE "C";
ALTER TABLE sessions ADD COLUMN memory_ref text COLLATE "C";
ALTER TABLE sessions ADD COLUMN context text COLLATE "C";
ALTER TABLE sessions ADD COLUMN context_version bigint NOT NULL DEFAULT 0;

-- Up to which event retention has removed the log; nothing above may ever go.
ALTER TABLE event_counters ADD COLUMN floor bigint NOT NULL DEFAULT 0;
CREATE FUNCTION holdfast_events_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM removed LEFT JOIN event_counters USING (account) WHERE removed.seq > coalesce(floor, 0)
    ) THEN
        RAISE EXCEPTION 'events are removed by retention alone';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER events_stay AFTER DELETE ON events
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION holdfast_events_stay();
CREATE FUNCTION holdfast_events_stay_whole() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'events are removed by retention alone'; END $$;
CREATE TRIGGER events_stay_whole BEFORE TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_events_stay_whole();
