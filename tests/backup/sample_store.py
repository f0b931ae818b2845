"""Stores with records in every table, and the comparison of two stores."""

from contextlib import contextmanager

from holdfast.app import make_store
from holdfast.backup.copy import compare, shared_tables
from holdfast.backup.source import open_source
from holdfast.engine.rollups.thread import RollupThread
from tests.reservation_commands import release_paths, reserve
from tests.support import ACCOUNT, claim, once, open_session, release, transact
from tests.task_commands import cancel, complete, create, fail, take_this


def no_report(*_):
    """Progress is not shown."""


@contextmanager
def opened(settings, clock=None):
    store = make_store(settings)
    store._clock = clock
    store.open()
    try:
        yield store
    finally:
        store.close()


def fill(settings, jobs=12):
    """Leases held and free, sessions, reservations, tasks in many states, accounts, answers, uses and budgets."""
    with opened(settings) as store:
        for account in (ACCOUNT, "acct_ünï"):
            own = {"account": account}
            transact(store, *(claim(f"job/{n}", f"l{n}", **own) for n in range(jobs)), open_session("s1", **own))
            transact(store, *(release(f"job/{n}", f"l{n}", **own) for n in range(0, jobs, 2)))
            transact(store, claim("once", "lo", once=once(), **own))
            transact(store, reserve(f"{account}-held", "src/", "größe/*", **own), reserve("done", "docs/", **own))
            transact(store, reserve("waits", "src/a", may_wait=True, **own), release_paths("done", **own))
        names = ("dead", "done", "dropped", "held", "ready")
        transact(store, *(create(name, payload='{"text": "naïve \\u0001 \\\\N"}') for name in names))
        transact(store, take_this("dead"), take_this("done"), take_this("held"))
        transact(store, fail("dead", permanent=True), complete("done"), cancel("dropped"))
        store.save_key_uses({(ACCOUNT, "key"): 5})
        store.beat()
        RollupThread(store).run()
    return settings


def newest_token(settings):
    """The newest token of a store."""
    with opened(settings) as store, store.read() as reader:
        return reader.next_token() - 1


def assert_same(one, other):
    """Both hold exactly the same records."""
    with open_source(one) as here, open_source(other) as there:
        file, database = (here, there) if one.store.startswith("sqlite:") else (there, here)
        counts = compare(here.endpoint, there.endpoint, shared_tables(file.endpoint, database.endpoint), no_report)
        assert counts["events"]
        assert counts["tasks"]
        assert counts["rollups"]
        assert counts["rollup_cursors"]
        return counts
