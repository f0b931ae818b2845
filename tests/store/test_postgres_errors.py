"""Errors of PostgreSQL: races on absent rows, refused values, connections that break before and inside COMMIT."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable, ValueRefused
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.engine.command import Held
from holdfast.engine.verbs.locks import Acquired
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.contract import Rerun, RowsLocked, StaleConnection
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore
from tests.support import (
    ACCOUNT,
    BOB,
    START,
    a_lease,
    acquire,
    check_log,
    claim,
    every,
    load_view,
    put,
    run,
    transact,
    wait_until,
)  # fmt: skip


def begun(transaction, *rows, answer=None):
    """A batch that is loaded and decided, but not saved yet."""
    wanted = () if answer is None else ((ACCOUNT, answer.key),)
    view = View(transaction.load(AllNeeds.of([Needs(rows=tuple(row.key for row in rows), answers=wanted)])))
    for row in rows:
        view.put(row, "changed")
    if answer is not None:
        view.remember(answer)
    return view.changes([])


def end_session_of(url, transaction):
    """Terminate the database session of a transaction, as an administrator could."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (transaction._connection.info.backend_pid,))


def test_the_second_of_two_batches_that_found_no_row_runs_again(postgres_store):
    with pytest.raises(Rerun), postgres_store.transaction(0) as late:
        changes = begun(late, a_lease(owner="late"))
        with postgres_store.transaction(1) as early:
            early.save(begun(early, a_lease(owner="early")))
        late.save(changes)
    assert [(row.owner, row.version) for row in every(postgres_store, Lease)] == [("early", 1)]
    check_log(postgres_store)


def test_the_second_of_two_batches_that_found_no_answer_runs_again(postgres_store):
    def answer(body):
        return Answer(ACCOUNT, "key-1", "print", 200, body, START)

    with pytest.raises(Rerun), postgres_store.transaction(0) as late:
        changes = begun(late, a_lease("x"), answer=answer("late"))
        with postgres_store.transaction(1) as early:
            early.save(begun(early, a_lease("y"), answer=answer("early")))
        late.save(changes)
    assert load_view(postgres_store, answers=((ACCOUNT, "key-1"),)).answer(ACCOUNT, "key-1").body == "early"
    assert [row.id for row in every(postgres_store, Lease)] == ["y"]


def test_a_batch_that_reads_an_answer_but_not_the_row_made_with_it_runs_again(postgres_store, database):
    """The row and its answer are committed between the two reads, which wait for each other here."""
    answer = Answer(ACCOUNT, "key-1", "print", 200, "{}", START)
    needs = {"rows": (a_lease().key,), "lock_counts": ((ACCOUNT, "id"),), "answers": ((ACCOUNT, "key-1"),)}
    with psycopg.connect(database) as blocker, ThreadPoolExecutor(1) as pool:
        blocker.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{ACCOUNT}\x1fid",))
        loading = pool.submit(load_view, postgres_store, **needs)
        waiting = (
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
        )
        wait_until(lambda: blocker.execute(waiting).fetchone() == (1,), 10)
        with postgres_store.transaction(1) as early:
            early.save(begun(early, a_lease(), answer=answer))
        blocker.rollback()
        with pytest.raises(Rerun):
            loading.result(10)
    assert load_view(postgres_store, **needs).at(a_lease().key) is not None


@pytest.mark.parametrize("history", ["grrg", "rgrrgg", "gxxg", "xgxxgg"])
def test_a_connection_works_after_reruns_and_refused_values(postgres_store, database, clock, history):
    """r must run again, x sends a refused value, g must succeed: statements skipped by an error were never prepared."""
    other = PostgresStore(database, clock)
    for number, step in enumerate(history):
        row = a_lease(f"job-{number}")
        if step == "g":
            transact(postgres_store, claim(row.id))
        elif step == "x":
            with pytest.raises(ValueRefused):
                transact(postgres_store, claim(row.id, ttl=2**63))
        else:
            with pytest.raises(Rerun), postgres_store.transaction() as late:
                changes = begun(late, row)
                late.draw(1)
                put(other, row)
                late.save(changes)
    other.close()


def test_a_batch_whose_row_changed_despite_its_lock_runs_again(postgres_store, database):
    put(postgres_store, a_lease())
    with pytest.raises(Rerun), postgres_store.transaction() as transaction:
        changes = begun(transaction, a_lease(owner="late"))
        changes.loaded[a_lease().key] = a_lease(version=7)
        transaction.save(changes)
    assert [row.version for row in every(postgres_store, Lease)] == [1]


def test_a_batch_waits_for_another_that_has_locked_the_row(postgres_store):
    put(postgres_store, a_lease())
    seen = []

    def second():
        with postgres_store.transaction(1) as transaction:
            view = View(transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))])))
            seen.append(view.lease(ACCOUNT, "job").owner)

    with postgres_store.transaction(0) as first:
        changes = begun(first, a_lease(owner="first"))
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        first.save(changes)
    waiting.join()
    assert seen == ["first"]


def test_two_batches_count_a_principal_s_locks_one_after_the_other(postgres_store):
    counted = []

    def second():
        with postgres_store.transaction(1) as transaction:
            view = View(transaction.load(AllNeeds.of([Needs(lock_counts=((ACCOUNT, BOB.id),))])))
            counted.append(view.live_locks(ACCOUNT, BOB.id))

    with postgres_store.transaction(0) as first:
        lock = a_lease("lock", kind="lock", principal=BOB.id)
        view = View(first.load(AllNeeds.of([Needs(rows=(lock.key,), lock_counts=((ACCOUNT, BOB.id),))])))
        view.put(lock, "claimed")
        counting = threading.Thread(target=second)
        counting.start()
        counting.join(0.2)
        assert counting.is_alive()
        first.save(view.changes([]))
    counting.join()
    assert counted == [1]


def test_nobody_draws_a_token_while_an_import_raises_them(postgres_store):
    """The counter is read and then set: a token that is drawn between would be drawn again."""
    with postgres_store.transaction(0) as importing:
        importing.load(AllNeeds.of([]))
        importing.advance_tokens(1)
        with pytest.raises(RowsLocked), postgres_store.transaction(1) as drawing:
            drawing.load(AllNeeds.of([]), 0.05)
            drawing.draw(1)


@pytest.mark.parametrize(
    "refused_row",
    [a_lease("x", note="a\0b"), a_lease("x\0y"), a_lease("x", ttl=2**63), a_lease("x", checkpoint="a\0b")],
    ids=["in a column", "in the key", "too large a number", "in a hashed column"],
)
def test_a_value_that_the_database_refuses_raises_value_refused(postgres_store, refused_row):
    with pytest.raises(ValueRefused):
        put(postgres_store, refused_row)
    assert every(postgres_store, Event) == []
    put(postgres_store, a_lease("y"))
    assert [row.id for row in every(postgres_store, Lease)] == ["y"]


def test_a_connection_that_broke_between_batches_fails_no_command(postgres_store, database):
    """The store reports that nothing was sent on it; the lane then runs the batch on a new one."""
    with postgres_store.transaction() as transaction:
        transaction.load(AllNeeds.of([]))
        dying = transaction
    end_session_of(database, dying)
    with pytest.raises(StaleConnection):
        put(postgres_store, a_lease())
    assert every(postgres_store, Lease) == []
    put(postgres_store, a_lease())
    assert len(every(postgres_store, Lease)) == 1


def test_a_connection_that_breaks_before_commit_means_not_applied(postgres_store, database):
    with pytest.raises(StoreUnavailable) as caught, postgres_store.transaction() as transaction:
        transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))]))
        end_session_of(database, transaction)
        transaction.draw(1)
    assert caught.value.applied == "no"
    put(postgres_store, a_lease())
    assert len(every(postgres_store, Lease)) == 1


def test_a_read_connection_that_broke_while_idle_is_replaced(postgres_store, database):
    with postgres_store.read() as reader:
        dying = reader
    end_session_of(database, dying)
    with postgres_store.read() as reader:
        assert reader.counts(ACCOUNT).live_leases == 0


def test_a_connection_that_breaks_during_a_read_raises_and_the_next_read_works(postgres_store, database):
    with pytest.raises(StoreUnavailable), postgres_store.read() as reader:
        end_session_of(database, reader)
        reader.counts(ACCOUNT)
    with postgres_store.read() as reader:
        assert reader.counts(ACCOUNT).live_leases == 0


class CuttingProxy:
    """Proxy between a store and its database that cuts the connection at COMMIT: on the way there or back."""

    def __init__(self, socket_path, *, on_the_way_back):
        self._socket_path = socket_path
        self._on_the_way_back = on_the_way_back
        self.cutting = False
        self.cuts = 0
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._socket_path))
            ends = [(client, server, False), (server, client, True)]
            for way in ends:
                threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(self, source, target, back):
        seen = b""
        while chunk := self._receive(source):
            seen = seen[-6:] + chunk
            if self.cutting and back is self._on_the_way_back and b"COMMIT\0" in seen:
                self.cuts += 1
                break
            target.sendall(chunk)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    @staticmethod
    def _receive(end):
        try:
            return end.recv(65536)
        except OSError:
            return b""

    def close(self):
        self._door.close()


@pytest.mark.parametrize("applied", [True, False], ids=["committed", "never arrived"])
def test_a_connection_that_breaks_inside_commit_means_unknown(postgres_store, postgres, database, clock, applied):
    proxy = CuttingProxy(postgres.home / ".s.PGSQL.5432", on_the_way_back=applied)
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    cut = PostgresStore(
        f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}?sslmode=disable&gssencmode=disable", clock
    )
    transact(cut, claim("warm up"))
    proxy.cutting = True
    with pytest.raises(OutcomeUnknown) as caught:
        transact(cut, claim("job"))
    assert caught.value.applied == "unknown"
    assert proxy.cuts == 1
    assert [row.id for row in every(postgres_store, Lease)] == (["job", "warm up"] if applied else ["warm up"])
    proxy.cutting = False
    transact(cut, claim("afterwards"))
    cut.close()
    proxy.close()
    check_log(postgres_store)


def test_behind_a_pooler_no_statement_or_setting_stays_in_the_session(new_postgres_database):
    """A pooler gives the next transaction any session: no prepared statement and no setting may stay."""
    store = PostgresStore(new_postgres_database(), pooled=True)
    store.open()
    try:
        granted, refused = transact(store, claim("job", "l1"), claim("job", "l2"))
        assert (granted.lease.token, type(refused)) == (1, Held)
        assert isinstance(run(store, acquire("lock")), Acquired)
        connection, _ = store._writers[0]
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert connection.execute("SHOW enable_seqscan").fetchone() == ("on",)
        check_log(store)
    finally:
        store.close()
