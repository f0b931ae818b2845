-- Why a task was given up.
ALTER TABLE tasks ADD COLUMN cancel_reason text;
