"""SQLite: the work of a query does not grow with what is stored. Work is counted in steps of its virtual machine."""

from __future__ import annotations

import re

import apsw
import pytest

from holdfast.core.lease import Lease
from holdfast.core.session import Session
from holdfast.core.task import COMPLETED, Task
from holdfast.store.contract.reads import TaskPath
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sqlite import SqliteStore, dependency_queries, queries
from tests.support import ACCOUNT, START, DrivenClock

FEW, MANY = 500, 8_000
LIVE = 100
"""How many leases, tasks and sessions of each store are in use; all others are free, finished or have ended."""

NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count} - 1)"
FILL = (
    f"""{NUMBERS} INSERT INTO leases (account, id, version, changed_at, kind, principal, proof, token, ttl, expires_at,
        session, ephemeral, delay)
    SELECT '{ACCOUNT}', printf('name/%07d', (n * 7919) % {{count}}), 1, {START},
        iif(n < {LIVE}, iif(n % 2, 'lock', 'job'), NULL), iif(n < {LIVE}, 'principal' || (n % 20), NULL),
        iif(n < {LIVE}, 'proof', NULL), n, 60, iif(n < {LIVE}, {START} + 60000000 + n, NULL),
        iif(n < {LIVE} AND n % 4 = 0, 's' || (n % 40), NULL), n < {LIVE} AND n % 4 = 0, 0 FROM numbers""",
    f"""{NUMBERS} INSERT INTO tasks (account, id, version, changed_at, type, payload, priority, max_attempts,
        lease_duration, created_at, tag, unique_key, state, ready, place, expires_at, proof, session, scheduled_at,
        requires)
    SELECT '{ACCOUNT}', printf('task%07d', n), 1, {START}, 'work', '{{{{}}}}', n % 3, 3, 1, {START}, 'tag' || (n / 20),
        'key' || n, CASE WHEN n < {LIVE} THEN 'claimed' WHEN n < {LIVE} * 3 THEN 'pending' ELSE '{COMPLETED}' END,
        n BETWEEN {LIVE} AND {LIVE} * 2 - 1, {START} + n, iif(n < {LIVE}, {START} + 60000000 + n, NULL),
        iif(n < {LIVE}, 'proof', NULL), iif(n < {LIVE}, 's' || (n % 40), NULL),
        iif(n BETWEEN {LIVE} * 2 AND {LIVE} * 3 - 1, {START} + 50000000, NULL),
        iif(n % 2, 'word' || (n % 5), NULL) FROM numbers""",
    "INSERT INTO task_counts SELECT account, type, state, count(*) FROM tasks GROUP BY account, type, state",
    f"""{NUMBERS} INSERT INTO sessions (account, id, version, changed_at, principal, ttl, opened_at, expires_at,
        ended_at, ended_how, name)
    SELECT '{ACCOUNT}', 's' || n, 1, {START}, 'p', 60, {START}, {START} + 60000000, iif(n < {LIVE}, NULL, {START}),
        iif(n < {LIVE}, NULL, 'deleted'), 'agent' || n FROM numbers""",
    f"""{NUMBERS} INSERT INTO events (account, subject, version, kind, at, actor, request_id, data, seq)
    SELECT '{ACCOUNT}', printf('lease:name/%07d', n / 4), n % 4 + 1, 'lease.claimed', {START}, 'a', 'r', '{{{{}}}}',
        n + 1 FROM numbers""",
    f"""{NUMBERS} INSERT INTO deliveries (account, hook, seq, subject, kind, body, created_at, state, attempts, next_at,
        claims, settled_at)
    SELECT '{ACCOUNT}', 'whk_1', n, 'task:' || n, 'task.created', '{{{{}}}}', {START},
        iif(n < {{count}} - {LIVE}, 'delivered', 'pending'), iif(n < {{count}} - {LIVE} / 2, 1, 0), {START}, 0,
        iif(n < {{count}} - {LIVE}, {START}, NULL) FROM numbers""",
    f"INSERT INTO event_counters (account, seq) VALUES ('{ACCOUNT}', {{count}})",
)


class CountedStore(SqliteStore):
    """A store that counts the steps of its statements, and what SQLite asks for while it prepares them."""

    steps = 0
    asked = 0

    def _connect(self):
        connection = super()._connect()
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._count)
        connection.authorizer = self._authorize
        return connection

    def _count(self, statement):
        self.steps += statement["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def _authorize(self, *_):
        self.asked += 1
        return apsw.SQLITE_OK


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    stores = []
    for count in (FEW, MANY):
        store = CountedStore(tmp_path_factory.mktemp("full") / "holdfast.db", DrivenClock())
        store.open()
        with store.write() as (execute, _):
            for statement in FILL:
                execute(statement.format(count=count))
        stores.append(store)
    yield stores
    for store in stores:
        store.close()


def load(**needs):
    """A batch that loads this."""

    def work(store):
        with store.transaction() as transaction:
            transaction.load(AllNeeds.of([Needs(**needs)]))

    return work


def read(look):
    def work(store):
        with store.read() as reader:
            look(reader)

    return work


WORK = {
    "a lease": load(rows=((Lease.table, ACCOUNT, "name/0000100"),)),
    "a new name": load(rows=((Lease.table, ACCOUNT, "new"),)),
    "what a session holds": load(holdings=((ACCOUNT, "s4"),)),
    "ready tasks": load(ready=((ACCOUNT, "work", 5),)),
    "ready tasks of any type": load(ready=((ACCOUNT, "", 5),)),
    "ready tasks for capabilities": load(
        ready=((ACCOUNT, "work", 5),), requiring=((ACCOUNT, "work", "word1,word2", ""),)
    ),
    "ready tasks of any type for capabilities": load(
        ready=((ACCOUNT, "", 5),), requiring=((ACCOUNT, "", "word1,word2", ""),)
    ),
    "a unique key": load(unique_keys=((ACCOUNT, "key200"),)),
    "the same unique key": load(same_key_as=((ACCOUNT, "task0000200"),)),
    "locks of a principal": load(lock_counts=((ACCOUNT, "principal3"),)),
    "elections": load(election_counts=(ACCOUNT,)),
    "usage of a plan": load(usage=(ACCOUNT,)),
    "live leases": read(lambda reader: reader.leases(ACCOUNT, "", "", 20)),
    "live leases within bytes": read(lambda reader: reader.leases(ACCOUNT, "name/", "", 20, 50_000)),
    "counts": read(lambda reader: reader.counts(ACCOUNT)),
    "usage": read(lambda reader: reader.usage(ACCOUNT)),
    "leases of a session": read(lambda reader: reader.holdings(Lease, (ACCOUNT, "s4"), "", 10)),
    "tasks of a session": read(lambda reader: reader.holdings(Task, (ACCOUNT, "s4"), "", 10)),
    "leases of a principal": read(lambda reader: reader.held_by(Lease, (ACCOUNT, "principal3"), "", 10, 50_000)),
    "tasks of a principal": read(lambda reader: reader.held_by(Task, (ACCOUNT, "principal3"), "", 10, 50_000)),
    "sessions of a principal": read(lambda reader: reader.held_by(Session, (ACCOUNT, "p"), "", 10, 50_000)),
    "number of leases of a session": read(lambda reader: reader.count_session_leases(ACCOUNT, "s4")),
    "open sessions": read(lambda reader: reader.sessions(ACCOUNT, "", 50, live=True)),
    "sessions": read(lambda reader: reader.sessions(ACCOUNT, "", 10)),
    "tasks by tag": read(lambda reader: reader.tasks(ACCOUNT, TaskPath(tag="tag5"), "~", 10)),
    "tasks by key": read(lambda reader: reader.tasks(ACCOUNT, TaskPath(unique_key="key5"), "~", 10)),
    "waiting tasks": read(lambda reader: reader.tasks(ACCOUNT, TaskPath(waits_for="room"), "~", 10)),
    "tasks by state": read(lambda reader: reader.tasks(ACCOUNT, TaskPath(state=COMPLETED), "~", 10)),
    "tasks by type": read(lambda reader: reader.tasks(ACCOUNT, TaskPath(type="work"), "~", 10)),
    "tasks": read(lambda reader: reader.tasks(ACCOUNT, TaskPath(), "~", 10, 50_000)),
    "queues": read(lambda reader: reader.queues(ACCOUNT, 10)),
    "next to expire": read(lambda reader: reader.next_to_expire(ACCOUNT, 10)),
    "next to expire within bytes": read(lambda reader: reader.next_to_expire(ACCOUNT, 10, 50_000)),
    "held counts": read(lambda reader: reader.held_counts(ACCOUNT)),
    "failure of a webhook": lambda store: store.deliveries.failure((ACCOUNT, "whk_1")),
    "logs to count": lambda store: store.rollups.uncounted(START, 10),
    "tasks before an event": lambda store: store.rollups.tasks_before(ACCOUNT, {"task0000100": 3, "task0000200": 2}),
    "delayed tasks": lambda store: store.rollups.delayed_tasks(ACCOUNT),
    "roll-ups": lambda store: store.rollups.page(ACCOUNT, 60_000_000, START),
    "resolved dead letters": read(lambda reader: reader.count_resolved(ACCOUNT, 10)),
    "totals": read(lambda reader: reader.totals()),
    "due": read(lambda reader: reader.due(100)),
    "next deadline": read(lambda reader: reader.next_deadline()),
    "held": read(lambda reader: reader.held_at(START)),
    "finished tasks": read(lambda reader: reader.finished_before(ACCOUNT, START + 1, 10, dead=False)),
    "events": read(lambda reader: reader.events(ACCOUNT, 100, 10)),
    "history": read(lambda reader: reader.history(ACCOUNT, "lease:name/0000100")),
    "brief history": read(lambda reader: reader.brief_history(ACCOUNT, "lease:name/0000100")),
    "last grant": read(lambda reader: reader.last_grant(ACCOUNT, "lease:name/0000100", 9)),
    "recent events": read(lambda reader: reader.recent_events(ACCOUNT, "lease:name/0000100", 9)),
    "changes": read(lambda reader: reader.changes(ACCOUNT, 100, 200, 10, 50_000)),
    "oldest events": read(lambda reader: reader.last_event_before(ACCOUNT, START - 5, 100)),
    "subjects of the oldest events": read(lambda reader: reader.subjects_up_to(ACCOUNT, 20)),
    "subjects": read(lambda reader: reader.subjects_after(ACCOUNT, "lease:name/0000050", 10)),
    "rows": read(lambda reader: reader.rows_after(Lease, ACCOUNT, "name/0000100", 10)),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_query_takes_as_many_steps_in_a_full_store_as_in_a_nearly_empty_one(stores, work):
    counted = []
    for store in stores:
        before = store.steps
        work(store)
        counted.append(store.steps - before)
    few, many = counted
    assert few > 10
    assert many < 1.3 * few, f"{many} steps instead of {few}"


def test_no_statement_is_prepared_again_for_new_arguments(stores):
    store, _ = stores
    for work in WORK.values():
        work(store)
    before = store.asked
    assert before > 0
    for work in WORK.values():
        work(store)
    assert store.asked == before


WRITES = {
    **{f"insert {row.table}": queries.insert_row(row, row.__struct_fields__, 2) for row in ROW_TYPES},
    **{f"update {row.table}": queries.update_row(row, row.__struct_fields__, 1) for row in ROW_TYPES},
    **{f"update many {row.table}": queries.update_row(row, row.__struct_fields__, 2) for row in ROW_TYPES},
    "insert answers": queries.insert_answer(2),
    "insert events": queries.insert_event(2),
    "add paths": queries.ADD_PATHS,
    "add dependencies": dependency_queries.ADD_DEPENDENCIES,
}
OE_ABORT = 2
"""In SQLite's programs: what is refused undoes the statement, and not the transaction."""


@pytest.mark.parametrize("write", WRITES)
def test_no_write_of_a_batch_can_be_undone_alone(stores, write):
    """Otherwise SQLite would copy each page before the statement changes it."""
    placeholders = set(re.findall(r"\?\d+", WRITES[write])) or re.findall(r"\?", WRITES[write])
    program = stores[0]._writer.execute(f"EXPLAIN {WRITES[write]}", [None] * len(placeholders)).fetchall()
    undone = [step for step in program if step[1] in {"Halt", "HaltIfNull"} and step[2] and step[3] == OE_ABORT]
    assert undone == []
