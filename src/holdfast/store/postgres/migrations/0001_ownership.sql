-- Who owns what, who is alive, and everything that ever happened. Times are microseconds; JSON is kept as text.
-- Text compares bytewise, as in every other store.

CREATE SEQUENCE fencing_tokens;

CREATE TABLE state (
    id       integer PRIMARY KEY CHECK (id = 1),
    alive_at bigint,           -- when a server last said that it serves this database
    clean    boolean NOT NULL  -- whether the last server ended on purpose
);
INSERT INTO state VALUES (1, NULL, true);

CREATE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- A save that touched another number of rows than it meant to has lost a race: the batch loads and decides again.
CREATE FUNCTION holdfast_expect(touched bigint, meant bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF touched <> meant THEN
        RAISE EXCEPTION 'touched % rows, meant %', touched, meant USING ERRCODE = 'serialization_failure';
    END IF;
END $$;

CREATE TABLE sessions (
    account    text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    changed_at bigint NOT NULL,
    principal  text COLLATE "C" NOT NULL,
    ttl        bigint NOT NULL,
    opened_at  bigint NOT NULL,
    expires_at bigint NOT NULL,
    ended_at   bigint,
    ended_how  text COLLATE "C",
    PRIMARY KEY (account, id)
);
CREATE INDEX sessions_due ON sessions (expires_at) WHERE ended_at IS NULL;

CREATE TABLE leases (
    account          text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    version          bigint NOT NULL,
    changed_at       bigint NOT NULL,
    kind             text COLLATE "C",
    holder           text COLLATE "C",
    owner            text COLLATE "C",
    principal        text COLLATE "C",
    proof            text COLLATE "C",
    token            bigint NOT NULL,
    ttl              bigint NOT NULL,
    claimed_at       bigint,
    expires_at       bigint,
    metadata         text COLLATE "C",
    session          text COLLATE "C",
    ephemeral        boolean NOT NULL,
    delay            bigint NOT NULL,
    available_at     bigint,
    note             text COLLATE "C",
    checkpoint       text COLLATE "C",
    progress         text COLLATE "C",
    acl              text COLLATE "C",
    ended            text COLLATE "C",
    ended_checkpoint text COLLATE "C",
    PRIMARY KEY (account, id)
);
CREATE INDEX leases_due ON leases (expires_at) WHERE expires_at IS NOT NULL;
-- Names that are held, so that counting and listing cost what is live, not what ever was.
CREATE INDEX leases_held ON leases (account, id) WHERE expires_at IS NOT NULL;
CREATE INDEX leases_of_principal ON leases (account, principal, expires_at) WHERE kind = 'lock';
CREATE INDEX leases_of_session ON leases (account, session) WHERE session IS NOT NULL;

CREATE TABLE principals (
    account    text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    changed_at bigint NOT NULL,
    name       text COLLATE "C" NOT NULL,
    source     text COLLATE "C" NOT NULL,
    key_hash   text COLLATE "C",
    scopes     text COLLATE "C" NOT NULL,
    namespace  text COLLATE "C",
    created_at bigint NOT NULL,
    revoked_at bigint,
    PRIMARY KEY (account, id)
);
CREATE INDEX principals_by_key ON principals (key_hash) WHERE revoked_at IS NULL;

CREATE TABLE answers (
    account     text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    status      bigint NOT NULL,
    body        text COLLATE "C" NOT NULL,
    answered_at bigint NOT NULL,
    PRIMARY KEY (account, key)
);
CREATE INDEX answers_by_age ON answers (answered_at);

CREATE TABLE event_counters (
    account text COLLATE "C" PRIMARY KEY,
    seq     bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE events (
    account    text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    at         bigint NOT NULL,
    actor      text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    data       text COLLATE "C" NOT NULL,
    seq        bigint NOT NULL,
    PRIMARY KEY (account, seq)
);
CREATE UNIQUE INDEX events_of_subject ON events (account, subject, version);

CREATE FUNCTION holdfast_events_never_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'events never change'; END $$;
CREATE TRIGGER events_never_change BEFORE UPDATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_events_never_change();
