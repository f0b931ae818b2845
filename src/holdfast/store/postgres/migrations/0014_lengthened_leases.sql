-- How long the lease of the present holder lasts, if its claim made it longer than the task's own.
ALTER TABLE tasks ADD COLUMN lengthened_to bigint;
