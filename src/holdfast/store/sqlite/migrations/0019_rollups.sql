-- Roll-ups of the log, from which charts are drawn. An older server writes none: a newer one counts its events later.
CREATE TABLE rollups (
    account TEXT NOT NULL,
    length  INTEGER NOT NULL,
    start   INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (account, length, start)
) STRICT, WITHOUT ROWID;
-- How far the log of each account is counted.
CREATE TABLE rollup_cursors (
    account    TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    counted_to INTEGER NOT NULL,
    saved_at   INTEGER NOT NULL,
    PRIMARY KEY (account)
) STRICT, WITHOUT ROWID;
