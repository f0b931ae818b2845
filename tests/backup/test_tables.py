"""The tables that are copied are those of the schemas, which are the same in both databases."""

import apsw
import psycopg

from holdfast.backup.copy import shared_tables
from holdfast.backup.endpoint import NOT_COPIED
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.postgres_target import store_tables
from holdfast.backup.sqlite import SqliteEndpoint
from holdfast.store.postgres import PostgresStore
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sqlite import SqliteStore


def test_both_databases_have_the_same_tables_columns_and_keys(tmp_path, database):
    SqliteStore(tmp_path / "x.db").open()
    PostgresStore(database).open()
    file = SqliteEndpoint(apsw.Connection(str(tmp_path / "x.db")))
    with psycopg.connect(database) as connection:
        endpoint = PostgresEndpoint(connection)
        assert endpoint.tables == file.tables
        assert store_tables(endpoint) == shared_tables(file, endpoint)
        assert {row.table for row in ROW_TYPES} < set(endpoint.tables)
        assert all(table.key for table in endpoint.tables.values())
        sequences = connection.execute("SELECT sequencename FROM pg_sequences").fetchall()
    assert sequences == [("fencing_tokens",)], "a counter beside the tables would not be copied"


def test_every_table_is_copied_except_those_specific_to_a_database(tmp_path):
    SqliteStore(tmp_path / "x.db").open()
    connection = apsw.Connection(str(tmp_path / "x.db"))
    every = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    of_its_own = {name for name in every if not name.startswith("sqlite_stat")} - set(SqliteEndpoint(connection).tables)
    assert of_its_own == {"state"}
    assert {"state", "schema_version", "backup", "unfinished_copy"} == NOT_COPIED
