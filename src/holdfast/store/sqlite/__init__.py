"""The store of one file: embedded, durable, shared by every process on the host."""

from holdfast.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
