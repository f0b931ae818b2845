-- To which trace a change belongs, and in which trace a task was created: W3C traceparents.
ALTER TABLE events ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN traceparent TEXT;
