-- As on SQLite, where a renewal then writes one page less.
DROP INDEX leases_held;
CREATE INDEX leases_held ON leases (account, id) WHERE proof IS NOT NULL;
-- Sessions that are open, so that listing them costs what is open, not what ever was.
CREATE INDEX sessions_open ON sessions (account, id) WHERE ended_at IS NULL;
