-- Raises the minimum schema.
-- Jobs that are done: an older server would claim them.
ALTER TABLE leases ADD COLUMN result text;
ALTER TABLE leases ADD COLUMN done_at bigint;
ALTER TABLE leases ADD COLUMN done_until bigint;
ALTER TABLE leases ADD COLUMN again_at bigint;
-- A list of done jobs, and the oldest of them.
CREATE INDEX leases_done ON leases (account, id) WHERE done_at IS NOT NULL;
CREATE INDEX leases_done_first ON leases (account, done_at) WHERE done_at IS NOT NULL;
