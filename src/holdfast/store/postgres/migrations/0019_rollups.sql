-- Roll-ups of the log, from which charts are drawn. An older server writes none: a newer one counts its events later.
CREATE TABLE rollups (
    account text COLLATE "C" NOT NULL,
    length  bigint NOT NULL,
    start   bigint NOT NULL,
    body    text COLLATE "C" NOT NULL,
    PRIMARY KEY (account, length, start)
);
-- How far the log of each account is counted.
CREATE TABLE rollup_cursors (
    account    text COLLATE "C" NOT NULL,
    seq        bigint NOT NULL,
    counted_to bigint NOT NULL,
    saved_at   bigint NOT NULL,
    PRIMARY KEY (account)
) WITH (fillfactor = 50);
