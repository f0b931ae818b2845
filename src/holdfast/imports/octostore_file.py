"""Reads the database file of an OctoStore server (0.14), which is left unchanged.

Bearer tokens and lease ids leave this module only as hashes; the secrets of webhooks must be kept, because they sign.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from holdfast.core import acl as access
from holdfast.core.errors import Invalid
from holdfast.core.imports.octostore_records import (
    DELAY_HOLDER,
    AccessList,
    Delay,
    Lock,
    Records,
    Session,
    User,
    Webhook,
)
from holdfast.core.lease import proof_of
from holdfast.core.names import is_storable
from holdfast.core.row import SECOND, Instant
from holdfast.core.webhooks.webhook import OCTOSTORE_EVENTS
from holdfast.decoding import decode

R = TypeVar("R")
Record = dict[str, Any]

DELAY_MARK = "__octostore_cooling_v1:"
MAX_TOKEN = 2**53 - 1
COLUMNS = {
    "users": "id github_username token namespace created_at",
    "fencing_counter": "counter",
    "locks": "name holder_id lease_id fencing_token expires_at metadata acquired_at session_id ephemeral"
    " lock_delay_seconds",
    "lock_acls": "name acquire_acl",
    "sessions": "id user_id ttl_seconds expires_at created_at",
    "webhooks": "id user_id url secret events lock_pattern created_at active",
}
"""The tables, and the columns that are read."""
_EVENTS = {*OCTOSTORE_EVENTS.values(), "*"}


class UnreadableFile(Exception):
    """The file is not an OctoStore database of a version that is known here."""


class _AclDocument(msgspec.Struct):
    acquire: list[str]


def read_octostore(path: Path) -> Records:
    """Everything in the file. Single records that cannot be read are listed in `refused`."""
    with _open(path) as connection:
        _check_tables(connection, path)
        tables = {table: list(_rows(connection, table)) for table in COLUMNS}
    return _Parser(tables).parse()


@contextmanager
def _open(path: Path) -> Iterator[apsw.Connection]:
    """The file, read-only. Without a write-ahead log nothing is created beside it, so its folder may be read-only."""
    if not path.is_file():
        raise UnreadableFile(f"there is no file {path}")
    log = path.with_name(path.name + "-wal")
    is_complete = not log.exists() or not log.stat().st_size
    uri = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if is_complete else ''}"
    try:
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            with connection:  # one snapshot
                yield connection
        finally:
            connection.close()
    except apsw.Error as error:
        raise UnreadableFile(f"{path} cannot be read: {error}") from error


def _check_tables(connection: apsw.Connection, path: Path) -> None:
    for table, columns in COLUMNS.items():
        found = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
        missing = sorted(set(columns.split()) - found)
        if missing:
            problem = f"its table {table} has no {', '.join(missing)}" if found else f"it has no table {table}"
            raise UnreadableFile(f"{path} is no database of OctoStore 0.14: {problem}")


def _rows(connection: apsw.Connection, table: str) -> Iterator[Record]:
    names = COLUMNS[table].split()
    for values in connection.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY rowid"):  # noqa: S608 - ours
        yield dict(zip(names, values, strict=True))


class _Parser:
    """Turns the records of each table into ours; what is wrong with one is kept, and the others go on."""

    def __init__(self, tables: dict[str, list[Record]]) -> None:
        self._tables = tables
        self._refused: list[str] = []
        self._bare_tokens = {row["token"] for row in tables["users"] if row["github_username"] == row["token"]}
        """Tokens whose users have no other name: they must not be stored as names."""

    def parse(self) -> Records:
        locks = self._all("locks", "name", _lock)
        return Records(
            next_token=max([_token(row["counter"]) for row in self._tables["fencing_counter"]], default=1),
            users=tuple(self._all("users", "", self._user)),
            sessions=tuple(self._all("sessions", "id", _session)),
            locks=tuple(lock for lock in locks if isinstance(lock, Lock)),
            delays=tuple(lock for lock in locks if isinstance(lock, Delay)),
            access_lists=tuple(self._all("lock_acls", "name", self._access_list)),
            webhooks=tuple(self._all("webhooks", "id", _webhook)),
            refused=tuple(self._refused),
        )

    def _all(self, table: str, key: str, parse: Callable[[Record], R]) -> list[R]:
        found = []
        for number, row in enumerate(self._tables[table], 1):
            try:
                found.append(parse(row))
            except (ValueError, TypeError, Invalid, msgspec.MsgspecError) as error:
                # The name of a user may be its token.
                label = row[key] if key else f"number {number}"
                self._refused.append(f"{table} {label}: {error}")
        return found

    def _user(self, row: Record) -> User:
        name, token = _text(row["github_username"]), _text(row["token"])
        number = self._tables["users"].index(row) + 1
        return User(
            id=_uuid(row["id"]),
            name=f"token-{number}" if name in self._bare_tokens else name,
            key_hash=access.hash_token(token),
            namespace=None if not row["namespace"] else _text(row["namespace"]),
            created_at=_instant(row["created_at"]),
        )

    def _access_list(self, row: Record) -> AccessList:
        entries = decode(row["acquire_acl"], _AclDocument).acquire
        names = {token.lower(): token for token in self._bare_tokens}
        found = []
        for entry in entries:
            kind, _, value = entry.partition(":")
            is_bare = kind == "user" and value.lower() in names
            found.append(f"token:{names[value.lower()]}" if is_bare else entry)
        return AccessList(_text(row["name"]), access.normalise(found))


def _lock(row: Record) -> Lock | Delay:
    name, holder, metadata = _text(row["name"]), _uuid(row["holder_id"]), row["metadata"]
    expires_at = _instant(row["expires_at"])
    if holder == DELAY_HOLDER:
        if not isinstance(metadata, str) or not metadata.removeprefix(DELAY_MARK).isdecimal():
            raise ValueError("a delay must have its length as metadata")
        return Delay(name, int(metadata.removeprefix(DELAY_MARK)) * SECOND, expires_at)
    return Lock(
        name=name,
        holder_id=holder,
        proof=proof_of(_uuid(row["lease_id"])),
        token=_token(row["fencing_token"]),
        acquired_at=_instant(row["acquired_at"]),
        expires_at=expires_at,
        metadata=None if metadata is None else _text(metadata),
        session_id=None if row["session_id"] is None else _uuid(row["session_id"]),
        ephemeral=bool(row["ephemeral"]),
        delay=_seconds(row["lock_delay_seconds"]),
    )


def _session(row: Record) -> Session:
    return Session(
        id=_uuid(row["id"]),
        user_id=_uuid(row["user_id"]),
        ttl=_seconds(row["ttl_seconds"]),
        expires_at=_instant(row["expires_at"]),
        created_at=_instant(row["created_at"]),
    )


def _webhook(row: Record) -> Webhook:
    events = decode(row["events"], list[str])
    if not _EVENTS.issuperset(events):
        raise ValueError(f"events must be some of {', '.join(sorted(_EVENTS))}")
    return Webhook(
        id=_uuid(row["id"]),
        user_id=_uuid(row["user_id"]),
        url=_text(row["url"]),
        secret=None if row["secret"] is None else _text(row["secret"]),
        events=msgspec.json.encode(events).decode(),
        pattern=None if row["lock_pattern"] is None else _text(row["lock_pattern"]),
        created_at=_instant(row["created_at"]),
        active=bool(row["active"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not is_storable(value):
        raise ValueError("expected text without U+0000")
    return value


def _uuid(value: object) -> str:
    return str(uuid.UUID(_text(value)))


def _instant(value: object) -> Instant:
    """RFC 3339 with up to nine digits of fraction; what is below a microsecond is cut off."""
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError("expected a time with an offset")
    return int(moment.replace(microsecond=0).timestamp()) * SECOND + moment.microsecond


def _seconds(value: object) -> Instant:
    if not isinstance(value, int) or not 0 <= value < 2**32:
        raise ValueError("expected a number of seconds")
    return value * SECOND


def _token(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < MAX_TOKEN:
        raise ValueError("expected a token below 2^53")
    return value
