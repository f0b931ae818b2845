"""The store on PostgreSQL, shared by any number of servers."""

from holdfast.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
