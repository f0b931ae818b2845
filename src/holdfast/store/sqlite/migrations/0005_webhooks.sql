-- Webhooks, how far each has read in the log, and what is on its way to them.

CREATE TABLE webhooks (
    account    TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    principal  TEXT NOT NULL,
    family     TEXT NOT NULL CHECK (family IN ('standard', 'octostore')),
    url        TEXT NOT NULL,
    events     TEXT NOT NULL,
    subject    TEXT,
    state      TEXT NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
    reason     TEXT,
    secret     TEXT,
    old_secret TEXT,
    old_until  INTEGER,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_active ON webhooks (account, id) WHERE state = 'active';

-- Beside the webhook's row, not in it: reading on is no event.
CREATE TABLE webhook_cursors (
    account TEXT NOT NULL,
    id      TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
    account       TEXT NOT NULL,
    hook          TEXT NOT NULL,
    seq           INTEGER NOT NULL,
    subject       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    body          TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts      INTEGER NOT NULL,
    next_at       INTEGER NOT NULL,
    claims        INTEGER NOT NULL,
    claimed_until INTEGER,
    status        INTEGER,
    error         TEXT,
    settled_at    INTEGER,
    PRIMARY KEY (account, hook, seq),
    CHECK ((state = 'pending') = (settled_at IS NULL))
) STRICT;
-- What is under way is little, whatever was delivered before.
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_in_line ON deliveries (account, hook, subject, seq) WHERE state = 'pending';
CREATE INDEX deliveries_in_state ON deliveries (account, hook, state, seq);
CREATE INDEX deliveries_by_age ON deliveries (state, settled_at) WHERE settled_at IS NOT NULL;
