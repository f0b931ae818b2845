-- What lets a browser in at the dashboard, by the hash of its secret. Not in the log: see core/badge.py.
CREATE TABLE badges (
    id        TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    account   TEXT NOT NULL,
    principal TEXT NOT NULL,
    key_hash  TEXT NOT NULL,
    made_at   INTEGER NOT NULL,
    seen_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
