"""Helpers for tests of core, store and engine: a driven clock, stores to open and empty, rows and commands."""

from __future__ import annotations

import functools
import json
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from holdfast.core.acl import hash_token
from holdfast.core.event import REMOVAL_VERBS, Cause, Event, fold, row_image, subject_of
from holdfast.core.lease import JOB, LOCK, Lease, proof_of
from holdfast.core.log_gap import is_log_subject, is_next
from holdfast.core.principal import ADMIN_ID, Principal
from holdfast.core.row import SECOND, Instant, Row
from holdfast.core.session import Session
from holdfast.core.task import Task, dependency_edges
from holdfast.engine.backlog import Backlog
from holdfast.engine.batches.transaction import Committed
from holdfast.engine.command import Command, Once
from holdfast.engine.engine import Engine
from holdfast.engine.lane import Lane
from holdfast.engine.outages import Outages
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.job_claims import ClaimAnyJob, Claimed, ClaimJob
from holdfast.engine.verbs.job_offers import OfferJob, WithdrawJobOffer
from holdfast.engine.verbs.jobs import HeartbeatJob, ReleaseJob
from holdfast.engine.verbs.locks import AcquireLock
from holdfast.engine.verbs.octostore_sessions import OpenSession
from holdfast.engine.view import View
from holdfast.store.concurrency_keys import WINDOW
from holdfast.store.contract import Clock, Store
from holdfast.store.memory.store import MemoryStore
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres import ready_queries as postgres_ready
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite import ready_queries as sqlite_ready
from tests.proof_size import FULL

STORES = ["memory", "sqlite", "postgres"]

# A busy machine makes single examples slow; that is no failure.
settings.register_profile(
    "holdfast",
    deadline=None,
    max_examples=100 if FULL else 10,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("holdfast")

START: Instant = 1_700_000_000 * SECOND
CAUSE = Cause("tester", "req_1")
ACCOUNT = "default"

ALICE = Principal(ACCOUNT, "id-alice", version=1, name="alice", key_hash=hash_token("alice's token"))
BOB = Principal(ACCOUNT, "id-bob", version=1, name="bob", key_hash=hash_token("bob's token"))
ADMIN = Principal(ACCOUNT, ADMIN_ID, version=1, name="admin")


class DrivenClock:
    """A clock that only the test moves."""

    def __init__(self, now: Instant = START) -> None:
        self.now = now

    def __call__(self) -> Instant:
        return self.now

    def advance(self, seconds: float) -> Instant:
        self.now += int(seconds * SECOND)
        return self.now


# -- stores ------------------------------------------------------------------------------------------------------


def make_store(kind: str, folder: Path, url: Callable[[], str], clock: Clock | None = None) -> Store:
    """An open store; `url` is called only if a database is needed."""
    store: Store
    if kind == "memory":
        store = MemoryStore(clock)
    elif kind == "sqlite":
        path = folder / "holdfast.db"
        if not path.exists():
            path.write_bytes(_fresh_file())
        store = SqliteStore(path, clock)
    else:
        store = PostgresStore(url(), clock)
    store.open()
    return store


@functools.cache
def _fresh_file() -> bytes:
    """Bytes of a new file with the schema; copying it is cheaper than migrating in every test."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "holdfast.db")
        store.open()
        store.close()
        return store.path.read_bytes()


def empty(store: Any) -> None:
    """Delete all rows: cheaper than a new database for every case."""
    tables = [
        *(row.table for row in ROW_TYPES),
        "task_dependencies",
        "reserved_paths",
        "task_counts",
        "usage",
        "budgets",
        "key_uses",
        "badges",
        "answers",
        "deliveries",
        "webhook_cursors",
        "rollups",
        "rollup_cursors",
        "events",
        "event_counters",
    ]
    if store.name == "memory":
        store.__init__(None if store._has_own_clock else store._clock)
    elif store.name == "sqlite":
        # Events go only below the floor, so it is raised first.
        raise_floor = "UPDATE event_counters SET floor = seq;"
        forget = "".join(f"DELETE FROM {table};" for table in tables)
        state = "UPDATE state SET token = 0, now = 0, boot_id = '', alive_at = NULL, clean = 1;"
        with store.transaction():
            pass  # opens a write connection if there is none
        with store._writing:
            store._writer.execute(f"BEGIN IMMEDIATE; {raise_floor} {forget} {state} COMMIT")
    else:
        with store.read() as reader:
            # Triggers keep the log from being emptied; they sleep only while a replica is being filled.
            for setting in ("session_replication_role = replica", "synchronous_commit = off"):
                reader.execute(f"SET {setting}")
            filled = (f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
            for (table,) in reader.execute(" UNION ALL ".join(filled)):
                reader.execute(f"DELETE FROM {table}")
            reader.execute("ALTER SEQUENCE fencing_tokens RESTART")
            reader.execute("UPDATE state SET alive_at = NULL, clean = true")
            reader.execute("RESET ALL")


def every(store: Any, record: type[Any]) -> list[Any]:
    """Every row, or every event, of a store."""
    if store.name == "memory":
        if record is Event:
            return [event for account in sorted(store.log) for event in store.log[account]]
        return sorted((row for row in store.rows.values() if type(row) is record), key=lambda row: row.key)
    table, order = ("events", "account, seq") if record is Event else (record.table, "account, id")
    query = f"SELECT {', '.join(record.__struct_fields__)} FROM {table} ORDER BY {order}"
    with store.read() as reader:
        if record is Event:
            return [Event(*columns) for columns in reader.execute(query)]
        return reader.rows(record, query)


def put(store: Store, *rows: Row, kind: str = "changed") -> View:
    """Save rows in one transaction."""
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=tuple(row.key for row in rows))])))
        for row in rows:
            view.put(row, kind)
        view.keep()
        transaction.save(view.changes([]))
    return view


def load_view(store: Store, **needs: Any) -> View:
    """The view of a transaction that changes nothing."""
    with store.transaction() as transaction:
        return View(transaction.load(AllNeeds.of([Needs(**needs)])))


def set_window(monkeypatch: Any, window: int) -> None:
    """Let claims look through fewer tasks at the head of a queue before they list its concurrency keys."""
    for module in (sqlite_ready, postgres_ready):
        for name in ("KEYED_FIRST", "KEYED_FROM", "KEYED_NEAR", "KEYED_BEYOND", "REQUIRING_NEAR", "REQUIRING_BEYOND"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, getattr(module, name).replace(str(WINDOW), str(window)))


def promptly(measure: Callable[[], list[float]], within: float, tries: int = 3) -> None:
    """Assert that the median delay is within its bound, in seconds.

    The measurement is repeated, because the machine may be busy; polling would exceed the bound each time.
    """
    seen = []
    for _ in range(tries):
        seen.append(measure())
        if statistics.median(seen[-1]) < within:
            return
    raise AssertionError(f"not within {within} s in {tries} tries: {seen}")


def check_log(store: Store) -> None:
    """The log is dense, has every change once, and folds into the stored rows.

    Rows that are there no longer end in an event that says so; tasks are as many as were counted. A running engine
    may write between our look at the log and at the rows: what differs then is looked at again.
    """
    while True:
        before = log_ends(store)
        try:
            _check_log(store)
            check_counts(store)
            check_dependencies(store)
        except AssertionError:
            if log_ends(store) == before:
                raise
        else:
            return


def log_ends(store: Store) -> dict[str, tuple[int, int]]:
    """The last sequence number of every account."""
    with store.read() as reader:
        return {account: reader.log_bounds(account) for account in reader.log_accounts()}


def _check_log(store: Store) -> None:
    by_account: dict[str, list[Event]] = {}
    by_subject: dict[tuple[str, str], list[Event]] = {}
    for event in every(store, Event):
        by_account.setdefault(event.account, []).append(event)
        if not is_log_subject(event.subject):
            by_subject.setdefault((event.account, event.subject), []).append(event)
    with store.read() as reader:
        bounds = {account: reader.log_bounds(account) for account in {*by_account, *reader.log_accounts()}}
    for account, (floor, last) in bounds.items():
        log = by_account.get(account, [])
        cursors = [floor, *(event.seq for event in log)]
        gaps = [event.seq for event, cursor in zip(log, cursors, strict=False) if not is_next(event, cursor)]
        assert not gaps, f"{account}: nothing tells why there is a gap before {gaps}"
        assert cursors[-1] == last, f"{account}: the log ends at {cursors[-1]}, its counter at {last}"
    for row_type in ROW_TYPES:
        for row in every(store, row_type):
            history = by_subject.pop((row.account, subject_of(row)), [])
            assert fold(row_type(row.account, row.id), history) == row_image(row), f"{row.key} differs from its log"
    blank = {row_type.noun: row_type for row_type in ROW_TYPES}
    for (account, subject), history in by_subject.items():
        noun, _, row_id = subject.partition(":")
        assert history[-1].kind.partition(".")[2] in REMOVAL_VERBS, (
            f"the log has events of {subject}, which does not exist"
        )
        assert fold(blank[noun](account, row_id), history) is None, (
            f"{subject} does not exist, but its log does not end with its removal"
        )


def check_dependencies(store: Any) -> None:
    """The table of dependencies has those of every task, and no others."""
    wanted = {edge for task in every(store, Task) for edge in dependency_edges(task)}
    if store.name == "memory":
        groups = store.indexes.groups.items()
        found = {(*name[1:], key[2]) for name, keys in groups if name[0] == "needs" for key in keys}
    else:
        with store.read() as reader:
            found = set(map(tuple, reader.execute("SELECT account, needed, dependent FROM task_dependencies")))
    assert found == wanted, "the table of dependencies differs from the tasks"


def check_counts(store: Any) -> None:
    """Tasks are as many as were counted while they changed."""
    tasks = Counter((task.account, task.type, task.state) for task in every(store, Task))
    if store.name == "memory":
        counted = [(*key, total) for key, total in store.indexes.task_counts.items() if total]
    else:
        with store.read() as reader:
            counted = list(reader.execute("SELECT account, type, state, total FROM task_counts WHERE total <> 0"))
    assert {tuple(key): total for *key, total in counted} == tasks, "tasks were counted wrongly"


# -- rows --------------------------------------------------------------------------------------------------------


def a_lease(
    name: str = "job", *, account: str = ACCOUNT, ends: Instant | None = START + 60 * SECOND, **more: Any
) -> Lease:
    """A held lease, or with `ends=None` a free row."""
    if ends is None:
        return Lease(account, name, **more)
    held: dict[str, Any] = {
        "kind": JOB,
        "holder": "h1",
        "owner": "worker",
        "principal": ALICE.id,
        "proof": proof_of("l1"),
        "token": 1,
        "ttl": 60 * SECOND,
        "claimed_at": ends - 60 * SECOND,
        "expires_at": ends,
    }
    return Lease(account, name, **(held | more))


def a_lock(name: str = "lock", **more: Any) -> Lease:
    return a_lease(name, **({"kind": LOCK} | more))


def a_session(
    session_id: str = "s1", *, account: str = ACCOUNT, ends: Instant = START + 60 * SECOND, **more: Any
) -> Session:
    fields: dict[str, Any] = {
        "principal": ALICE.id,
        "ttl": 60 * SECOND,
        "opened_at": ends - 60 * SECOND,
        "expires_at": ends,
    }
    return Session(account, session_id, **(fields | more))


# -- commands ----------------------------------------------------------------------------------------------------


def claim(name: str = "job", lease_id: str = "l1", **more: Any) -> ClaimJob:
    given: dict[str, Any] = {"by": ALICE, "owner": "worker", "holder": f"h-{lease_id}", "ttl": 60 * SECOND}
    return ClaimJob(**({"account": ACCOUNT, "cause": CAUSE, "name": name, "lease_id": lease_id} | given | more))


def claim_any(*names: str, lease_id: str = "l1", **more: Any) -> ClaimAnyJob:
    given: dict[str, Any] = {"by": ALICE, "owner": "worker", "holder": f"h-{lease_id}", "ttl": 60 * SECOND}
    return ClaimAnyJob(**({"account": ACCOUNT, "cause": CAUSE, "names": names, "lease_id": lease_id} | given | more))


def heartbeat(name: str = "job", lease_id: str = "l1", **more: Any) -> HeartbeatJob:
    return HeartbeatJob(**({"account": ACCOUNT, "cause": CAUSE, "name": name, "lease_id": lease_id} | more))


def release(name: str = "job", lease_id: str = "l1", **more: Any) -> ReleaseJob:
    return ReleaseJob(**({"account": ACCOUNT, "cause": CAUSE, "name": name, "lease_id": lease_id} | more))


def offer(name: str = "job", lease_id: str = "l1", code: str = "code-1", **more: Any) -> OfferJob:
    """Offer a job for ten minutes."""
    given: dict[str, Any] = {"account": ACCOUNT, "cause": CAUSE, "name": name, "lease_id": lease_id, "code": code}
    return OfferJob(**(given | {"lasts": 600 * SECOND} | more))


def withdraw(name: str = "job", lease_id: str = "l1", **more: Any) -> WithdrawJobOffer:
    return WithdrawJobOffer(**({"account": ACCOUNT, "cause": CAUSE, "name": name, "lease_id": lease_id} | more))


def acquire(name: str = "lock", by: Principal = ALICE, **more: Any) -> AcquireLock:
    given: dict[str, Any] = {"secret": by.name.encode(), "ttl": 60 * SECOND, "limit": 100}
    return AcquireLock(**({"account": ACCOUNT, "cause": CAUSE, "name": name, "by": by} | given | more))


def open_session(name: str = "s1", by: Principal = ALICE, **more: Any) -> OpenSession:
    return OpenSession(**({"account": ACCOUNT, "cause": CAUSE, "session_id": name, "by": by} | more))


def once(key: str = "key-1", fingerprint: str = "body-1") -> Once:
    """An Idempotency-Key whose stored answer contains the lease id, as the HTTP handler's does."""
    return Once(key, fingerprint, render_claim)


def render_claim(outcome: Any) -> tuple[int, bytes]:
    if isinstance(outcome, Claimed):
        return 200, json.dumps({"job_id": outcome.lease.id, "lease_id": outcome.lease_id}).encode()
    return 200, b'{"status":"%s"}' % type(outcome).__name__.encode()


# -- running them ------------------------------------------------------------------------------------------------


class Keep:
    """A sink that keeps every reply, in order."""

    def __init__(self) -> None:
        self.replies: list[tuple[Ticket, Any]] = []

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        self.replies += replies


def idle_lane(store: Store, on_commit: Callable[[Committed], Any] = lambda _: None, number: int = 0) -> Lane:
    """A lane whose thread is not started: tests run its batches themselves."""
    return Lane(number, store, Backlog(), Outages(), on_commit=on_commit, on_return=list)


def transact(store: Store, *commands: Command[Any]) -> list[Any]:
    """Run commands as one batch in this thread; their outcomes."""
    sink = Keep()
    committed = idle_lane(store).transaction.run([Ticket(command, sink) for command in commands])
    return [outcome for _, outcome in committed.replies]


def run(store: Store, command: Command[Any]) -> Any:
    """Run one command alone; a refusal is raised."""
    (outcome,) = transact(store, command)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


class Futures:
    """A sink for callers in several threads; records the order and time of each reply."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.at: dict[Any, float] = {}

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        for ticket, outcome in replies:
            name = getattr(ticket.command, "lease_id", None)
            self.order.append(name)
            self.at[name] = time.monotonic()
            if isinstance(outcome, BaseException):
                ticket.slot.set_exception(outcome)
            else:
                ticket.slot.set_result(outcome)

    def send(self, engine: Engine, command: Command[Any], wait_seconds: float = 0.0) -> tuple[Ticket, Future[Any]]:
        future: Future[Any] = Future()
        return engine.submit(command, self, future, wait_seconds), future


def stop_in_time(engine: Engine, seconds: float = 30.0) -> None:
    """Stop an engine; fail if it does not stop in time."""
    stopping = threading.Thread(target=engine.stop, daemon=True)
    stopping.start()
    stopping.join(seconds)
    assert not stopping.is_alive(), f"the engine did not stop within {seconds} s"


def in_time(call: Callable[[], Any], seconds: float = 10.0) -> Any:
    """The result of a call, or its error; fail if it does not return in time."""
    return in_background(call).result(seconds)


def in_background(call: Callable[[], Any]) -> Future[Any]:
    """Call in a thread that does not keep the process alive, so that a call that hangs fails only its test."""
    answer: Future[Any] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer


def wait_until(true: Callable[[], Any], seconds: float = 15.0) -> None:
    """Poll a condition with growing pauses; fail if it does not become true in time."""
    deadline, pause = time.monotonic() + seconds, 0.002
    while not true():
        assert time.monotonic() < deadline, f"still waiting after {seconds} s"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.05)


def results(futures: Iterable[Future[Any]], seconds: float = 10.0) -> list[Any]:
    """The result of each future, or its error."""
    return [future.exception(seconds) or future.result() for future in futures]
