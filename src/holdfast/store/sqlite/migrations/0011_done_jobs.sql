-- Raises the minimum schema.
-- Jobs that are done: an older server would claim them.
ALTER TABLE leases ADD COLUMN result TEXT;
ALTER TABLE leases ADD COLUMN done_at INTEGER;
ALTER TABLE leases ADD COLUMN done_until INTEGER;
ALTER TABLE leases ADD COLUMN again_at INTEGER;
-- A list of done jobs, and the oldest of them.
CREATE INDEX leases_done ON leases (account, id) WHERE done_at IS NOT NULL;
CREATE INDEX leases_done_first ON leases (account, done_at) WHERE done_at IS NOT NULL;
-- What the planner assumes, as for the other indexes.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('leases', 'leases_done', '10000 1000 1'),
    ('leases', 'leases_done_first', '10000 1000 1');
ANALYZE sqlite_schema;
