"""The kept stores of older versions (tests/upgrade/stores): unpacked, loaded, and the secrets of their holders."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

STORES = Path(__file__).parent / "stores"
OLD = "56d5e9c"
"""The version whose stores are opened: the commit that made them."""
OLD_SCHEMA = 8


@cache
def known(kind: str) -> dict[str, Any]:
    """The secrets that its holders know of a store, and when it was made, by the kind of the store."""
    found: dict[str, Any] = json.loads((STORES / f"{OLD}.json").read_text())[kind]
    return found


@cache
def _unpacked(name: str) -> bytes:
    return gzip.decompress((STORES / f"{name}.gz").read_bytes())


def sqlite_file(path: Path) -> Path:
    """A copy of the SQLite store."""
    path.write_bytes(_unpacked(f"{OLD}.db"))
    return path


def load_into_postgres(url: str) -> None:
    """Load the PostgreSQL store into an empty database."""
    with psycopg.connect(url, autocommit=True) as connection:
        # psycopg would read "%" and send a prepared statement; as bytes it is sent as it is.
        connection.pgconn.exec_(b"BEGIN;" + (STORES / f"{OLD}.sql").read_bytes() + b"COMMIT")
        tables = connection.execute("SELECT max(number) FROM schema_version").fetchone()
        assert tables == (OLD_SCHEMA,)


def backup_file(kind: str, path: Path) -> Path:
    """A copy of the backup of a store of this kind."""
    path.write_bytes(_unpacked(f"{OLD}-{kind}.backup"))
    return path
