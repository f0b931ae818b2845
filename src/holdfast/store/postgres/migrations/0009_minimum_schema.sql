-- The least schema that a server must know to use this store (store/sql/migrations.py).
ALTER TABLE state ADD COLUMN minimum_schema bigint NOT NULL DEFAULT 0;
