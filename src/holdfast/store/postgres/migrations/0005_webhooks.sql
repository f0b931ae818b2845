-- Webhooks, how far each has read in the log, and what is on its way to them.

CREATE TABLE webhooks (
    account    text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    changed_at bigint NOT NULL,
    principal  text COLLATE "C" NOT NULL,
    family     text COLLATE "C" NOT NULL CHECK (family IN ('standard', 'octostore')),
    url        text COLLATE "C" NOT NULL,
    events     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C",
    state      text COLLATE "C" NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
    reason     text COLLATE "C",
    secret     text COLLATE "C",
    old_secret text COLLATE "C",
    old_until  bigint,
    created_at bigint NOT NULL,
    PRIMARY KEY (account, id)
);
CREATE INDEX webhooks_active ON webhooks (account, id) WHERE state = 'active';

-- Beside the webhook's row, not in it: reading on is no event.
CREATE TABLE webhook_cursors (
    account text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    PRIMARY KEY (account, id)
);

CREATE TABLE deliveries (
    account       text COLLATE "C" NOT NULL,
    hook          text COLLATE "C" NOT NULL,
    seq           bigint NOT NULL,
    subject       text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    body          text COLLATE "C" NOT NULL,
    created_at    bigint NOT NULL,
    state         text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts      bigint NOT NULL,
    next_at       bigint NOT NULL,
    claims        bigint NOT NULL,
    claimed_until bigint,
    status        bigint,
    error         text COLLATE "C",
    settled_at    bigint,
    PRIMARY KEY (account, hook, seq),
    CHECK ((state = 'pending') = (settled_at IS NULL))
) WITH (fillfactor = 70);
-- What is under way is little, whatever was delivered before.
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_in_line ON deliveries (account, hook, subject, seq) WHERE state = 'pending';
CREATE INDEX deliveries_in_state ON deliveries (account, hook, state, seq);
CREATE INDEX deliveries_by_age ON deliveries (state, settled_at) WHERE settled_at IS NOT NULL;
