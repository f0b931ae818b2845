"""The store on one SQLite file: embedded, durable, shared by all processes on the host."""

from holdfast.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
