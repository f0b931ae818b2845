-- What a trigger refuses rolls back the transaction. RAISE(ABORT) undoes the statement alone, and for that SQLite copied
-- every page before the statement changed it; a batch that fails is rolled back as a whole anyway.
DROP TRIGGER events_never_change;
DROP TRIGGER events_never_replaced;
DROP TRIGGER events_stay;
DROP TRIGGER tasks_final;
CREATE TRIGGER events_never_change BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ROLLBACK, 'events never change'); END;
CREATE TRIGGER events_never_replaced BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE account = NEW.account AND seq = NEW.seq)
    BEGIN SELECT RAISE(ROLLBACK, 'events never change'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events
    WHEN OLD.seq > coalesce((SELECT floor FROM event_counters WHERE account = OLD.account), 0)
    BEGIN SELECT RAISE(ROLLBACK, 'events are removed by retention alone'); END;
CREATE TRIGGER tasks_final BEFORE UPDATE OF state ON tasks
    WHEN (OLD.state IN ('completed', 'cancelled') AND NEW.state <> OLD.state)
        OR (OLD.state = 'dead_letter' AND NEW.state NOT IN ('dead_letter', 'pending') AND NEW.version < OLD.version + 2)
        OR NEW.attempt < OLD.attempt
    BEGIN SELECT RAISE(ROLLBACK, 'a finished task never changes its state'); END;
