-- Runs at the end of a migration that raises the minimum schema. {number} is the number of that migration.
-- Servers that know schema 9 or newer set holdfast.schema before they write to one of these tables; older ones do not,
-- so their writes fail as well. Every batch writes events or answers; the other tables are written outside of batches.
UPDATE state SET minimum_schema = {number};
CREATE OR REPLACE FUNCTION holdfast_check_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(nullif(current_setting('holdfast.schema', true), ''), '0')::bigint < {number} THEN
        RAISE EXCEPTION 'the store needs a Holdfast that knows schema {number}: upgrade this server' USING ERRCODE = 'HF001';
    END IF;
    RETURN NULL;
END $$;
DO $$
DECLARE
    guarded text;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['answers', 'badges', 'budgets', 'deliveries', 'event_counters', 'events', 'key_uses', 'state', 'webhook_cursors']
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE TRIGGER check_server BEFORE INSERT OR UPDATE OR DELETE ON %I'
            ' FOR EACH STATEMENT EXECUTE FUNCTION holdfast_check_server()', guarded);
    END LOOP;
END $$;
