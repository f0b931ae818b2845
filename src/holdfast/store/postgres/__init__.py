"""The shared store: any number of servers on one PostgreSQL."""

from holdfast.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
