-- Raises the minimum schema.
-- The offer of the present holder: an older server would keep it for the next one, and renew the lease to less than it.
ALTER TABLE leases ADD COLUMN offer TEXT;
ALTER TABLE tasks ADD COLUMN offer TEXT;
