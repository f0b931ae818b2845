-- Fewer pages for each change, and plans whose cost does not grow with what is stored.

-- With row ids: names that were claimed together share pages, in whatever order they sort, and a new name goes to the
-- last page. Before, the rows themselves were sorted by name: every new one had a page of its own to change, and often to
-- split.
CREATE TABLE leases_with_row_ids (
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
) STRICT;
INSERT INTO leases_with_row_ids SELECT * FROM leases;
DROP TABLE leases;
ALTER TABLE leases_with_row_ids RENAME TO leases;
CREATE INDEX leases_due ON leases (expires_at) WHERE expires_at IS NOT NULL;
-- A renewal changes the deadline and nothing that this index needs.
CREATE INDEX leases_held ON leases (account, id) WHERE proof IS NOT NULL;
CREATE INDEX leases_of_principal ON leases (account, principal, expires_at) WHERE kind = 'lock';
CREATE INDEX leases_of_session ON leases (account, session) WHERE session IS NOT NULL;

-- Sessions that are open, so that listing them costs what is open, not what ever was.
CREATE INDEX sessions_open ON sessions (account, id) WHERE ended_at IS NULL;

-- What the planner assumes: a large store. Without statistics it takes an account for a few rows, and would read all of
-- them where an index has the ones that are held, ready or due. Each line: how many rows an index has, then how many
-- have the same first column, the same first two, and so on. The first ANALYZE makes an empty table, the last loads it.
DROP TABLE IF EXISTS sqlite_stat1;
DROP TABLE IF EXISTS sqlite_stat4;
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('sessions', 'sessions', '1000000 1000000 1'),
    ('sessions', 'sessions_due', '10000 1'),
    ('sessions', 'sessions_open', '10000 1000 1'),
    ('leases', 'sqlite_autoindex_leases_1', '1000000 1000000 1'),
    ('leases', 'leases_due', '10000 1'),
    ('leases', 'leases_held', '10000 1000 1'),
    ('leases', 'leases_of_principal', '10000 10000 10 1'),
    ('leases', 'leases_of_session', '10000 10000 10'),
    ('tasks', 'sqlite_autoindex_tasks_1', '1000000 1000000 1'),
    ('tasks', 'tasks_ready', '10000 10000 1000 100 2 1'),
    ('tasks', 'tasks_ready_any', '10000 10000 100 2 1'),
    ('tasks', 'tasks_ripe', '10000 10000 1000 1'),
    ('tasks', 'tasks_scheduled', '10000 1'),
    ('tasks', 'tasks_due', '10000 1'),
    ('tasks', 'tasks_listed', '1000000 1000000 100000 50000 1'),
    ('tasks', 'tasks_tagged', '1000000 1000000 1000 1'),
    ('tasks', 'tasks_keyed', '1000000 1000000 10 1'),
    ('tasks', 'tasks_one_live', '10000 10000 1'),
    ('tasks', 'tasks_of_session', '10000 10000 10'),
    ('tasks', 'tasks_finished', '1000000 1000000 1');
ANALYZE sqlite_schema;
