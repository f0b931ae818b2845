"""Renders the statements of `store/sql` for psycopg."""

from __future__ import annotations

from functools import cache


@cache
def render(statement: str) -> str:
    """The statement with psycopg's placeholder and PostgreSQL's function to unpack a JSON array."""
    return statement.replace("json_each(?)", "json_array_elements(?::json)").replace("?", "%s")
