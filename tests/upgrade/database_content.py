"""Everything in a database: its schema and its rows, to compare it before and after."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

import apsw
import psycopg

from holdfast.settings import sqlite_path

_POSTGRES_SCHEMA = """
SELECT 'column', attrelid::regclass::text, attname, format_type(atttypid, atttypmod) || attnotnull
    || coalesce(pg_get_expr(adbin, adrelid), '')
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attnum > 0
    AND attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r')
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger
    WHERE NOT tgisinternal
UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'function', proname, '', prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'sequence', sequencename, '', last_value::text FROM pg_sequences WHERE schemaname = 'public'
"""


class Content(NamedTuple):
    """A database at one moment."""

    number: int
    """Of its schema."""
    schema: frozenset[tuple[Any, ...]]
    rows: dict[str, list[dict[str, Any]]]
    """By table, in the order of their text."""


def content(address: str) -> Content:
    """The content of a database."""
    if address.startswith("postgresql:"):
        with psycopg.connect(address) as connection:
            schema = frozenset(connection.execute(_POSTGRES_SCHEMA))
            reader = connection.cursor(row_factory=psycopg.rows.dict_row)
            tables = {table for kind, table, *_ in schema if kind == "column"}
            rows = {table: _sorted(reader.execute(f"SELECT * FROM {table}").fetchall()) for table in tables}
        return Content(max((row["number"] for row in rows.get("schema_version", [])), default=0), schema, rows)
    with closing(apsw.Connection(str(sqlite_path(address)))) as file:
        schema = frozenset(file.execute("SELECT type, tbl_name, name, sql FROM sqlite_schema"))
        rows = {}
        for kind, table, *_ in schema:
            if kind == "table":
                names = [str(name) for (name,) in file.execute("SELECT name FROM pragma_table_info(?)", (table,))]
                found = file.execute(f"SELECT {', '.join(names)} FROM {table}")
                rows[str(table)] = _sorted([dict(zip(names, row, strict=True)) for row in found])
        return Content(int(file.pragma("user_version")), schema, rows)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def has_rows(later: Content, earlier: Content) -> bool:
    """Whether the later content has exactly the rows of the earlier one, perhaps with more columns or tables."""
    if _minimum_schema(later) < _minimum_schema(earlier):
        return False
    for table, rows in earlier.rows.items():
        if table in _ABOUT_SCHEMA:
            continue
        columns = (set().union(*rows) if rows else set()) - {_MINIMUM}
        kept = [{name: value for name, value in row.items() if name in columns} for row in later.rows[table]]
        if rows and _sorted(kept) != _sorted([_without_minimum(row) for row in rows]):
            return False
        if not rows and later.rows[table]:
            return False
    return True


_ABOUT_SCHEMA = {"schema_version", "sqlite_stat1"}
"""Tables that migrations write: the numbers of those that ran, and fixed statistics of new indexes."""
_MINIMUM = "minimum_schema"
"""The column that a migration may raise."""


def _without_minimum(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != _MINIMUM}


def _minimum_schema(content: Content) -> int:
    return max((row[_MINIMUM] for row in content.rows.get("state", []) if _MINIMUM in row), default=0)
