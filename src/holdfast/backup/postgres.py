"""A PostgreSQL database as the source or target of a copy."""

from __future__ import annotations

import time
from typing import Any

from psycopg import DataError, IntegrityError, sql

from holdfast.backup.endpoint import NOT_COPIED, STATE, STATE_OF_ITS_OWN, CopyRefused, Record, Table
from holdfast.store.postgres.connection import Connection

TIMEOUTS = ("statement_timeout", "idle_in_transaction_session_timeout")
_COLUMNS = """
SELECT tables.relname, columns.attname, coalesce(array_position(keys.indkey::int2[], columns.attnum), -1),
    columns.atttypid = 'boolean'::regtype
FROM pg_class AS tables
JOIN pg_attribute AS columns ON columns.attrelid = tables.oid AND columns.attnum > 0
    AND NOT columns.attisdropped AND columns.attgenerated = ''
LEFT JOIN pg_index AS keys ON keys.indrelid = tables.oid AND keys.indisprimary
WHERE tables.relkind = 'r' AND tables.relnamespace = current_schema()::text::regnamespace
ORDER BY tables.relname COLLATE "C", columns.attname COLLATE "C"
"""
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = 'holdfast' AND pid <> pg_backend_pid()"
)
ENDING_SECONDS = 1.0
"""PostgreSQL may list a connection for a moment after it was closed."""


class PostgresEndpoint:
    """Reads and writes through a connection; the caller begins and ends transactions."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.left_out: list[str] = []
        """Records that the database refuses: table, key and the reason."""
        found: dict[str, list[tuple[str, int]]] = {}
        self._booleans: set[tuple[str, str]] = set()
        for table, column, position, is_boolean in connection.execute(_COLUMNS):
            found.setdefault(table, []).append((column, position))
            if is_boolean:
                self._booleans.add((table, column))
        self.tables = {
            name: Table(
                name,
                tuple(column for column, _ in columns),
                tuple(column for _, column in sorted((at, column) for column, at in columns if at >= 0)),
            )
            for name, columns in found.items()
            if name not in NOT_COPIED
        }

    def page(self, table: Table, after: Record | None, limit: int) -> list[Record]:
        """Records after a key."""
        columns = sql.SQL(", ").join(
            sql.SQL("{}::int" if (table.name, column) in self._booleans else "{}").format(sql.Identifier(column))
            for column in table.columns
        )
        key = sql.SQL(", ").join(map(sql.Identifier, table.key))
        placeholders = sql.SQL(", ").join([sql.Placeholder()] * len(table.key))
        where = sql.SQL(" WHERE ({}) > ({})").format(key, placeholders) if after else sql.SQL("")
        query = sql.SQL("SELECT {} FROM {}{} ORDER BY {} LIMIT {}").format(
            columns, sql.Identifier(table.name), where, key, sql.Literal(limit)
        )
        return self.connection.execute(query, after or ()).fetchall()

    def put(self, table: Table, records: list[Record]) -> None:
        """Add records. Those that the database refuses, which are damaged in the source, are left out."""
        try:
            self._copy(table, records)
        except (DataError, IntegrityError) as error:
            if len(records) == 1:
                self.left_out.append(table.left_out(records[0], error.diag.message_primary or error))
                return
            middle = len(records) // 2
            self.put(table, records[:middle])
            self.put(table, records[middle:])

    def _copy(self, table: Table, records: list[Record]) -> None:
        """Add all records, or none."""
        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), columns)
        with self.connection.transaction(), self.connection.cursor() as cursor, cursor.copy(statement) as stream:
            for record in records:
                if any(isinstance(value, bytes) for value in record):  # it would become text that looks valid
                    raise DataError("it has text that is not valid UTF-8")
                stream.write_row(record)

    def count(self, table: Table) -> int:
        """How many records there are."""
        return int(self._value(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.name))))

    def state(self) -> dict[str, Any]:
        """The state row, with the token of the sequence and the time of the database."""
        cursor = self.connection.execute("SELECT * FROM state")
        names = [column.name for column in cursor.description or ()]
        row: Any = cursor.fetchone()
        state = {
            name: int(value) if (STATE, name) in self._booleans and value is not None else value
            for name, value in zip(names, row, strict=True)
            if name not in STATE_OF_ITS_OWN
        }
        token = self._value("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM fencing_tokens")
        return state | {"token": token, "now": self.now()}

    def put_state(self, state: dict[str, Any]) -> None:
        """Set the state row. The sequence is not rolled back with the transaction, so it is only ever raised."""
        token = max(int(state["token"]), int(self.state()["token"]))
        self.connection.execute("SELECT setval('fencing_tokens', greatest(%s, 1), %s > 0)", (token, token))
        own = self.state().keys() - {"token", "now"}
        for name in sorted(own & state.keys()):
            value = bool(state[name]) if (STATE, name) in self._booleans and state[name] is not None else state[name]
            statement = sql.SQL("UPDATE state SET {} = %s").format(sql.Identifier(name))
            self.connection.execute(statement, (value,))

    def now(self) -> int:
        """The database's clock."""
        return int(self._value("SELECT holdfast_now()"))

    def logs(self) -> dict[str, int]:
        """The last event of every account."""
        return dict(self.connection.execute("SELECT account, seq FROM event_counters").fetchall())

    def has_records(self, tables: list[Table]) -> bool:
        """Whether any of these tables has a record."""
        return any(self.page(table, None, 1) for table in tables)

    def clear(self, tables: list[Table]) -> None:
        """Delete every record. A trigger lets only events below the floor be deleted, so the floor is raised first."""
        self.connection.execute("UPDATE event_counters SET floor = seq")
        for table in sorted(tables, key=lambda table: table.name == "event_counters"):
            self.connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))

    def disable_timeouts(self) -> None:
        """Disable the timeouts of a server's statements, until this transaction ends."""
        for setting in TIMEOUTS:
            self.connection.execute(f"SET LOCAL {setting} = 0")

    def lock(self, tables: list[Table]) -> None:
        """Keep others from reading and writing until this transaction ends."""
        names = sql.SQL(", ").join(sql.Identifier(name) for name in sorted({STATE, *(table.name for table in tables)}))
        self.connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(names))

    def refuse_other_connections(self) -> None:
        """Raise CopyRefused while a server or another program has the database open."""
        until = time.monotonic() + ENDING_SECONDS
        while others := self._value(_OTHERS):
            if time.monotonic() >= until:
                raise CopyRefused(f"the database is in use ({others} connections of Holdfast): stop its servers first")
            time.sleep(0.05)
            self._value("SELECT pg_stat_clear_snapshot()")  # within a transaction the list would stay the same

    def _value(self, query: Any) -> Any:
        row: Any = self.connection.execute(query).fetchone()
        return row[0]
