"""The caches of keys and accounts: a change on this server takes effect at once, also for look-ups under way."""

import asyncio

import pytest

from holdfast.core.account import Account
from holdfast.core.acl import hash_token
from holdfast.core.errors import UnknownKey
from holdfast.core.principal import Principal, revoke
from holdfast.engine.engine import Engine
from holdfast.store.memory.store import MemoryStore
from holdfast.telemetry.registry import Registry
from holdfast.telemetry.shared_memory import SharedRegistry
from holdfast.transport.http.access.admission import AccountCache
from holdfast.transport.http.access.auth import Authenticator
from holdfast.transport.http.reads import StoreReads
from tests.support import put

KEY = "a-token-of-at-least-24-characters"
ROW = Principal("acct_1", "k1", key_hash=hash_token(KEY), scopes="jobs")


class SlowStore:
    """A store in memory whose next read returns only when the test allows it."""

    def __init__(self):
        self.store = MemoryStore()
        self.reads = StoreReads(Engine(self.store))
        self.has_read, self.may_return = asyncio.Event(), asyncio.Event()
        self.is_slow = True

    async def read(self, query):
        found = await self.reads.read(query)
        if self.is_slow:
            self.is_slow = False
            self.has_read.set()
            await self.may_return.wait()
        return found

    read_known = read

    def find(self, key_hash, _):
        return self.read(lambda reader: reader.principal(key_hash))


def test_a_look_up_that_began_before_a_revocation_is_not_cached():
    async def run():
        slow = SlowStore()
        put(slow.store, ROW, kind="created")
        keys = Authenticator(slow.find, None, Registry())
        early = asyncio.ensure_future(keys.principal_of(KEY))
        await slow.has_read.wait()
        row = slow.store.rows[ROW.key]
        put(slow.store, revoke(row, 1), kind="revoked")
        keys.note_change()
        late = asyncio.ensure_future(keys.principal_of(KEY))
        with pytest.raises(UnknownKey):
            await asyncio.wait_for(late, 10)  # it does not share the look-up that began before
        slow.may_return.set()
        assert (await early).id == ROW.id
        with pytest.raises(UnknownKey):
            await keys.principal_of(KEY)
        slow.reads.close()

    asyncio.run(run())


def test_a_revocation_takes_effect_in_every_worker_process_of_a_server():
    async def run():
        slow = SlowStore()
        slow.is_slow = False
        put(slow.store, ROW, kind="created")
        shared = SharedRegistry.create(workers=2)
        here, there = (Authenticator(slow.find, None, Registry(shared.row(worker), shared)) for worker in range(2))
        assert [(await each.principal_of(KEY)).id for each in (here, there)] == [ROW.id, ROW.id]
        put(slow.store, revoke(slow.store.rows[ROW.key], 1), kind="revoked")
        here.note_change()
        for each in (here, there):
            with pytest.raises(UnknownKey):
                await each.principal_of(KEY)
        slow.reads.close()

    asyncio.run(run())


def test_a_key_stays_cached_while_no_key_changes():
    async def run():
        slow = SlowStore()
        slow.is_slow = False
        put(slow.store, ROW, kind="created")
        keys = Authenticator(slow.find, None, Registry())
        await keys.principal_of(KEY)
        slow.is_slow = True  # a look-up would wait for ever
        assert (await asyncio.wait_for(keys.principal_of(KEY), 10)).id == ROW.id
        slow.reads.close()

    asyncio.run(run())


def test_a_changed_account_is_read_again_by_every_worker():
    async def run():
        slow, registry = SlowStore(), Registry()
        slow.is_slow = False
        caches = [AccountCache(slow, registry) for _ in range(2)]
        assert [(await each.get("acct_1")).require_lease_id for each in caches] == [False, False]
        put(slow.store, Account("acct_1", "acct_1", require_lease_id=True), kind="created")
        assert (await caches[1].get("acct_1")).require_lease_id is False
        caches[0].note_change()
        assert [(await each.get("acct_1")).require_lease_id for each in caches] == [True, True]
        slow.reads.close()

    asyncio.run(run())


def test_a_read_that_began_before_an_account_changed_does_not_replace_the_newer_one():
    async def run():
        slow = SlowStore()
        accounts = AccountCache(slow, Registry())
        early = asyncio.ensure_future(accounts.get("acct_1"))
        await slow.has_read.wait()
        put(slow.store, Account("acct_1", "acct_1", require_lease_id=True), kind="created")
        accounts.note_change()
        slow.may_return.set()
        await early
        assert (await accounts.get("acct_1")).require_lease_id is True
        slow.reads.close()

    asyncio.run(run())
