"""Writes small database files with the tables of OctoStore 0.14."""

from __future__ import annotations

import json
import sqlite3
import uuid
from datetime import UTC, datetime
from pathlib import Path

from holdfast.core.row import SECOND, Instant

TABLES = """
CREATE TABLE users (id TEXT PRIMARY KEY, github_id INTEGER NOT NULL UNIQUE, github_username TEXT NOT NULL,
    token TEXT NOT NULL UNIQUE, namespace TEXT, identity_source TEXT NOT NULL DEFAULT 'legacy',
    created_at TEXT NOT NULL);
CREATE TABLE fencing_counter (id INTEGER PRIMARY KEY CHECK (id = 1), counter INTEGER NOT NULL DEFAULT 0);
CREATE TABLE locks (name TEXT PRIMARY KEY, holder_id TEXT NOT NULL, lease_id TEXT NOT NULL,
    fencing_token INTEGER NOT NULL, expires_at TEXT NOT NULL, metadata TEXT, acquired_at TEXT NOT NULL, session_id TEXT,
    ephemeral INTEGER NOT NULL DEFAULT 0, lock_delay_seconds INTEGER NOT NULL DEFAULT 0);
CREATE TABLE lock_acls (name TEXT PRIMARY KEY, acquire_acl TEXT NOT NULL);
CREATE TABLE sessions (id TEXT PRIMARY KEY, user_id TEXT NOT NULL, ttl_seconds INTEGER NOT NULL,
    expires_at TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE webhooks (id TEXT PRIMARY KEY, user_id TEXT NOT NULL, url TEXT NOT NULL, secret TEXT, events TEXT NOT NULL,
    lock_pattern TEXT, created_at TEXT NOT NULL, active INTEGER NOT NULL DEFAULT 1);
"""
NOBODY = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class Database:
    """A file that OctoStore could have left; times are seconds after `now`."""

    def __init__(self, path: Path, now: Instant, *, counter: int = 1_000) -> None:
        self.path = path
        self._now = now
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(TABLES)
        self.insert("fencing_counter", id=1, counter=counter)

    def insert(self, table: str, **values: object) -> None:
        marks = ", ".join("?" * len(values))
        self.connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))

    def at(self, seconds: float) -> str:
        """A time as OctoStore writes it, with nanoseconds."""
        whole, rest = divmod(self._now + int(seconds * SECOND), SECOND)
        return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06}789+00:00"

    def user(self, name: str, token: str, **more: object) -> str:
        values = {"id": str(uuid.uuid4()), "github_id": -abs(hash(name)), "created_at": self.at(-1_000), **more}
        self.insert("users", github_username=name, token=token, identity_source="static", **values)
        return str(values["id"])

    def lock(self, name: str, holder: str, token: int, *, ends: float = 600, **more: object) -> str:
        values = {"lease_id": str(uuid.uuid4()), "acquired_at": self.at(-60), "expires_at": self.at(ends), **more}
        self.insert("locks", name=name, holder_id=holder, fencing_token=token, **values)
        return str(values["lease_id"])

    def session(self, user: str, *, ends: float = 200) -> str:
        session = str(uuid.uuid4())
        times = {"expires_at": self.at(ends), "created_at": self.at(-100)}
        self.insert("sessions", id=session, user_id=user, ttl_seconds=300, **times)
        return session

    def delay(self, name: str, seconds: int, *, ends: float) -> None:
        nil, at = "00000000-0000-0000-0000-000000000000", self.at(ends)
        marks = {"lease_id": nil, "metadata": f"__octostore_cooling_v1:{seconds}", "acquired_at": at}
        self.lock(name, NOBODY, 0, ends=ends, **marks)

    def acl(self, name: str, *entries: str) -> None:
        self.insert("lock_acls", name=name, acquire_acl=json.dumps({"acquire": entries}))

    def webhook(self, user: str, url: str = "https://example.com/hook", **more: object) -> str:
        values = {"id": str(uuid.uuid4()), "events": '["acquired","released"]', "created_at": self.at(-50), **more}
        self.insert("webhooks", user_id=user, url=url, **values)
        return str(values["id"])

    def close(self) -> Path:
        """Close it as a stopped server does: the write-ahead log is gone."""
        self.connection.close()
        return self.path
