-- Raises the minimum schema.
-- Reservations: an older server would not end those of a session with it.
CREATE TABLE reservations (
    account      TEXT NOT NULL,
    id           TEXT NOT NULL,
    version      INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL,
    space        TEXT NOT NULL,
    mode         TEXT NOT NULL,
    paths        TEXT NOT NULL,
    owner        TEXT NOT NULL,
    principal    TEXT NOT NULL,
    reason       TEXT,
    metadata     TEXT,
    session      TEXT,
    ttl          INTEGER NOT NULL,
    arrived_at   INTEGER NOT NULL,
    waits_until  INTEGER,
    proof        TEXT,
    token        INTEGER NOT NULL,
    claimed_at   INTEGER,
    expires_at   INTEGER,
    note         TEXT,
    checkpoint   TEXT,
    offer        TEXT,
    ended_at     INTEGER,
    ended_how    TEXT,
    ended_proof  TEXT,
    ended_by     TEXT,
    ended_reason TEXT,
    PRIMARY KEY (account, id)
) STRICT;
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
    account TEXT NOT NULL,
    space   TEXT NOT NULL,
    prefix  TEXT NOT NULL,
    id      TEXT NOT NULL,
    PRIMARY KEY (account, space, prefix, id)
) STRICT, WITHOUT ROWID;

-- What the planner assumes, as for the other indexes.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('reservations', 'sqlite_autoindex_reservations_1', '1000000 1000000 1'),
    ('reservations', 'reservations_held', '10000 1000 100 1'),
    ('reservations', 'reservations_waiting', '10000 1000 100 1'),
    ('reservations', 'reservations_open', '10000 1000 100 1'),
    ('reservations', 'reservations_due', '10000 1'),
    ('reservations', 'reservations_void', '10000 1'),
    ('reservations', 'reservations_of_session', '10000 10000 10'),
    ('reserved_paths', 'reserved_paths', '100000 10000 1000 2 1');
ANALYZE sqlite_schema;
