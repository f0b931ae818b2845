-- Accounts with plans, keys with an end, and what is counted for them.

ALTER TABLE accounts ADD COLUMN plan text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN plan_expires_at bigint;
ALTER TABLE accounts ADD COLUMN cycle_anchor bigint NOT NULL DEFAULT 0;

ALTER TABLE principals ADD COLUMN shown text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE principals ADD COLUMN prefix text COLLATE "C";
ALTER TABLE principals ADD COLUMN expires_at bigint;
ALTER TABLE principals ADD COLUMN old_key_hash text COLLATE "C";
ALTER TABLE principals ADD COLUMN old_until bigint;
ALTER TABLE principals ADD COLUMN listed_hash text COLLATE "C";
CREATE INDEX principals_by_old_key ON principals (old_key_hash) WHERE old_key_hash IS NOT NULL AND revoked_at IS NULL;

-- How many tasks an account has created in the cycle that began then.
CREATE TABLE usage (
    account text COLLATE "C" PRIMARY KEY,
    cycle   bigint NOT NULL,
    created bigint NOT NULL
) WITH (fillfactor = 50);

-- How much of a budget of requests has been handed out to servers in the window that began then.
CREATE TABLE budgets (
    subject    text COLLATE "C" NOT NULL,
    class      text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    used       bigint NOT NULL,
    PRIMARY KEY (subject, class)
) WITH (fillfactor = 50);

-- When a key was last seen; not in the log, and at most a minute old.
CREATE TABLE key_uses (
    account text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    used_at bigint NOT NULL,
    PRIMARY KEY (account, id)
) WITH (fillfactor = 50);
