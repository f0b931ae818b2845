-- Plans that somebody wants to pay for.

CREATE TABLE purchases (
    account      TEXT NOT NULL,
    id           TEXT NOT NULL,
    version      INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL,
    plan         TEXT NOT NULL,
    price_cents  INTEGER NOT NULL,
    currency     TEXT NOT NULL,
    days         INTEGER NOT NULL,
    provider     TEXT NOT NULL,
    order_id     TEXT NOT NULL,
    checkout_url TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('created', 'completed', 'failed')),
    capture_id   TEXT,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    completed_at INTEGER,
    PRIMARY KEY (account, id),
    CHECK ((state = 'completed') = (capture_id IS NOT NULL))
) STRICT, WITHOUT ROWID;
-- Whatever a program tries, one payment pays for one purchase, in all accounts together.
CREATE UNIQUE INDEX purchases_one_capture ON purchases (capture_id) WHERE capture_id IS NOT NULL;
