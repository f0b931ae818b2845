"""Accounts registered from different addresses, and plans set directly in the store."""

import itertools

from msgspec.structs import replace

from holdfast.core.account import Account as AccountRow
from holdfast.settings import sqlite_path
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import Account, register
from tests.support import put

addresses = (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" for number in itertools.count(1))


def register_from_new_address(server: Server) -> Account:
    """Register an account from an unused client address, so that the limit by address does not apply."""
    return register(server.anyone.with_headers(CF_Connecting_IP=next(addresses)))


def buy(server: Server, account: Account, plan: str, expires_at: int) -> None:
    """Write a plan into the row of an account, before the server has read and cached it."""
    sqlite = server.store.startswith("sqlite:")
    store = SqliteStore(sqlite_path(server.store)) if sqlite else PostgresStore(server.store)
    store.open()
    with store.read() as reader:
        row = reader.row(AccountRow, account.id, account.id)
    assert row is not None
    put(store, replace(row, plan=plan, plan_expires_at=expires_at), kind="settled")
    store.close()
