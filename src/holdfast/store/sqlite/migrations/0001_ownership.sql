-- Who owns what, who is alive, and everything that ever happened. Times are microseconds; JSON is kept as text.

CREATE TABLE state (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    token    INTEGER NOT NULL,  -- the newest fencing token
    now      INTEGER NOT NULL,  -- the clock at the last commit
    boot_id  TEXT NOT NULL,     -- the boot during which that was
    boot_at  INTEGER NOT NULL,  -- the boot clock at that moment
    alive_at INTEGER,           -- when a server last said that it serves this file
    clean    INTEGER NOT NULL   -- whether the last server ended on purpose
) STRICT;
INSERT INTO state VALUES (1, 0, 0, '', 0, NULL, 1);

-- Every commit touches this row, so one check here keeps out programs whose SQLite is not ours:
-- releases before 3.51.3 can corrupt a WAL file that has two writers.
CREATE TRIGGER only_holdfast_writes BEFORE UPDATE ON state BEGIN SELECT holdfast_writer(); END;

CREATE TABLE sessions (
    account    TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    principal  TEXT NOT NULL,
    ttl        INTEGER NOT NULL,
    opened_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at   INTEGER,
    ended_how  TEXT,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_due ON sessions (expires_at) WHERE ended_at IS NULL;

CREATE TABLE leases (
    account          TEXT NOT NULL,
    id               TEXT NOT NULL,
    version          INTEGER NOT NULL,
    changed_at       INTEGER NOT NULL,
    kind             TEXT,
    holder           TEXT,
    owner            TEXT,
    principal        TEXT,
    proof            TEXT,
    token            INTEGER NOT NULL,
    ttl              INTEGER NOT NULL,
    claimed_at       INTEGER,
    expires_at       INTEGER,
    metadata         TEXT,
    session          TEXT,
    ephemeral        INTEGER NOT NULL,
    delay            INTEGER NOT NULL,
    available_at     INTEGER,
    note             TEXT,
    checkpoint       TEXT,
    progress         TEXT,
    acl              TEXT,
    ended            TEXT,
    ended_checkpoint TEXT,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_due ON leases (expires_at) WHERE expires_at IS NOT NULL;
-- Names that are held, so that counting and listing cost what is live, not what ever was.
CREATE INDEX leases_held ON leases (account, id) WHERE expires_at IS NOT NULL;
CREATE INDEX leases_of_principal ON leases (account, principal, expires_at) WHERE kind = 'lock';
CREATE INDEX leases_of_session ON leases (account, session) WHERE session IS NOT NULL;

CREATE TABLE principals (
    account    TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    name       TEXT NOT NULL,
    source     TEXT NOT NULL,
    key_hash   TEXT,
    scopes     TEXT NOT NULL,
    namespace  TEXT,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX principals_by_key ON principals (key_hash) WHERE revoked_at IS NULL;

CREATE TABLE answers (
    account     TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status      INTEGER NOT NULL,
    body        TEXT NOT NULL,
    answered_at INTEGER NOT NULL,
    PRIMARY KEY (account, key)
) STRICT;
CREATE INDEX answers_by_age ON answers (answered_at);

CREATE TABLE event_counters (
    account TEXT PRIMARY KEY,
    seq     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    account    TEXT NOT NULL,
    subject    TEXT NOT NULL,
    version    INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    at         INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    request_id TEXT NOT NULL,
    data       TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX events_of_subject ON events (account, subject, version);
CREATE TRIGGER events_never_change BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events never change'); END;
