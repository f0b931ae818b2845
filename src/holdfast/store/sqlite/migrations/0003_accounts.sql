-- Accounts with plans, keys with an end, and what is counted for them.

ALTER TABLE accounts ADD COLUMN plan TEXT NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN plan_expires_at INTEGER;
ALTER TABLE accounts ADD COLUMN cycle_anchor INTEGER NOT NULL DEFAULT 0;

ALTER TABLE principals ADD COLUMN shown TEXT NOT NULL DEFAULT '';
ALTER TABLE principals ADD COLUMN prefix TEXT;
ALTER TABLE principals ADD COLUMN expires_at INTEGER;
ALTER TABLE principals ADD COLUMN old_key_hash TEXT;
ALTER TABLE principals ADD COLUMN old_until INTEGER;
ALTER TABLE principals ADD COLUMN listed_hash TEXT;
CREATE INDEX principals_by_old_key ON principals (old_key_hash) WHERE old_key_hash IS NOT NULL AND revoked_at IS NULL;

-- How many tasks an account has created in the cycle that began then.
CREATE TABLE usage (
    account TEXT PRIMARY KEY,
    cycle   INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How much of a budget of requests has been handed out to servers in the window that began then.
CREATE TABLE budgets (
    subject    TEXT NOT NULL,
    class      TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    used       INTEGER NOT NULL,
    PRIMARY KEY (subject, class)
) STRICT, WITHOUT ROWID;

-- When a key was last seen; not in the log, and at most a minute old.
CREATE TABLE key_uses (
    account TEXT NOT NULL,
    id      TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
