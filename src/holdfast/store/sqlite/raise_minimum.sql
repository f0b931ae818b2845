-- Runs at the end of a migration that raises the minimum schema. {number} is the number of that migration.
-- Every commit updates this row. Servers that know schema 9 or newer define holdfast_writer with one argument and refuse a
-- number that they do not know; older ones define it without an argument, so their writes fail as well.
DROP TRIGGER only_holdfast_writes;
UPDATE state SET minimum_schema = {number};
CREATE TRIGGER only_holdfast_writes BEFORE UPDATE ON state BEGIN SELECT holdfast_writer({number}); END;
