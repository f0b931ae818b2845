-- Raises the minimum schema.
-- Reservations: an older server would not end those of a session with it.
CREATE TABLE reservations (
    account      text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    version      bigint NOT NULL,
    changed_at   bigint NOT NULL,
    space        text COLLATE "C" NOT NULL,
    mode         text COLLATE "C" NOT NULL,
    paths        text COLLATE "C" NOT NULL,
    owner        text COLLATE "C" NOT NULL,
    principal    text COLLATE "C" NOT NULL,
    reason       text COLLATE "C",
    metadata     text COLLATE "C",
    session      text COLLATE "C",
    ttl          bigint NOT NULL,
    arrived_at   bigint NOT NULL,
    waits_until  bigint,
    proof        text COLLATE "C",
    token        bigint NOT NULL,
    claimed_at   bigint,
    expires_at   bigint,
    note         text COLLATE "C",
    checkpoint   text COLLATE "C",
    offer        text COLLATE "C",
    ended_at     bigint,
    ended_how    text COLLATE "C",
    ended_proof  text COLLATE "C",
    ended_by     text COLLATE "C",
    ended_reason text COLLATE "C",
    PRIMARY KEY (account, id)
);
-- How many are held in a space, and how many wait.
CREATE INDEX reservations_held ON reservations (account, space, expires_at) WHERE proof IS NOT NULL;
CREATE INDEX reservations_waiting ON reservations (account, space, waits_until) WHERE waits_until IS NOT NULL;
-- Lists cost what is open, not what ever was.
CREATE INDEX reservations_open ON reservations (account, space, id) WHERE ended_at IS NULL;
CREATE INDEX reservations_due ON reservations (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX reservations_void ON reservations (waits_until) WHERE waits_until IS NOT NULL;
CREATE INDEX reservations_of_session ON reservations (account, session) WHERE session IS NOT NULL AND proof IS NOT NULL;

-- The prefix of each pattern of the open ones: what is before its first wildcard. A path is compared only with patterns
-- whose prefix lies above it or below it.
CREATE TABLE reserved_paths (
    account text COLLATE "C" NOT NULL,
    space   text COLLATE "C" NOT NULL,
    prefix  text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    PRIMARY KEY (account, space, prefix, id)
);
