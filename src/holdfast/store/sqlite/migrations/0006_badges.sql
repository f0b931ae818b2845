-- Browser sessions and sign-in links of the dashboard, by the hash of the secret. Not in the log: see core/browser_session.py.
CREATE TABLE badges (
    id        TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    account   TEXT NOT NULL,
    principal TEXT NOT NULL,
    key_hash  TEXT NOT NULL,
    made_at   INTEGER NOT NULL,
    seen_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
