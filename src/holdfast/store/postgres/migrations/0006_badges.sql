-- Browser sessions and sign-in links of the dashboard, by the hash of the secret. Not in the log: see core/browser_session.py.
CREATE TABLE badges (
    id        text COLLATE "C" PRIMARY KEY,
    kind      text COLLATE "C" NOT NULL,
    account   text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    key_hash  text COLLATE "C" NOT NULL,
    made_at   bigint NOT NULL,
    seen_at   bigint NOT NULL
);
