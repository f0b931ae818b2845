"""One damaged record stops no list, page, sweep, claim, backup or stream, and is named where somebody looks for it."""

import json
import logging
from pathlib import Path

import pytest

from holdfast.backup.backup import backup
from holdfast.backup.restore import restore
from holdfast.core.errors import DamagedRow
from holdfast.core.event import DAMAGED
from holdfast.core.lease import Lease
from holdfast.core.task import CLAIMED, PENDING, Task
from holdfast.core.task.queue import Queue
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import ChangedReservation, FilesHeld
from holdfast.engine.verbs.tasks.claiming import Empty
from holdfast.engine.verbs.tasks.creating import Created
from holdfast.engine.verify import verify
from holdfast.engine.view import View
from holdfast.settings import Settings
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from holdfast.telemetry import metric_names
from tests.damaged_records import (
    BLOB,
    COUNTERS,
    RESERVATIONS,
    SESSIONS,
    TTL,
    cases_for,
    damaged,
    fill,
    without_rules,
    write,
)
from tests.dashboard.in_process import InProcessDashboard
from tests.http.job_client import ROOT_KEY
from tests.proof_size import sized
from tests.reservation_commands import release_paths, renew, reserve
from tests.support import ACCOUNT, DrivenClock, claim, heartbeat, make_store, once, put, transact, wait_until
from tests.task_commands import beat, cancel, complete, create, take, take_this

BAD_SESSION = SESSIONS["bad"]
LISTS = {
    "/v1/jobs": "good-leases",
    "/v1/tasks": "good-tasks",
    "/v1/tasks?state=claimed": "good-tasks",
    "/v1/tasks/counts": "claimed",
    "/v1/reservations": RESERVATIONS["good"],
    "/v1/reservations?space=acme/shop&path=good/x": RESERVATIONS["good"],
    "/v1/sessions": SESSIONS["good"],
    "/v1/keys": "good-principals",
    "/v1/webhooks": "good-webhooks",
    "/v1/webhooks/good-webhooks/deliveries": "webhook.test",
    "/v1/events?limit=1000": "lease:good-leases",
    "/v1/account": "default",
    "/v1/account/export": SESSIONS["good"],
    "/locks": "good-leases",
    "/status": "active_locks",
    "/metrics/prometheus": "holdfast_live_leases",
    "/readyz": "ready",
}
PAGES = ("", "jobs", "tasks", "dead-letters", "agents", "elections", "events", "keys", "webhooks",
         f"agents/{SESSIONS['good']}", "jobs/good-leases", "tasks/good-tasks", "webhooks/good-webhooks")  # fmt: skip
DETAILS = {
    "leases": "/v1/jobs/bad-leases",
    "tasks": "/v1/tasks/bad-tasks",
    "reservations": f"/v1/reservations/{RESERVATIONS['bad']}",
    "sessions": f"/v1/sessions/{SESSIONS['bad']}",
    "principals": "/v1/keys/bad-principals",
    "webhooks": "/v1/webhooks/bad-webhooks",
}
"""Where the damaged row itself is asked for."""
EVERY = sized(20, 1)
"""`make test` takes every sixth case."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def site(request, tmp_path_factory):
    """A server in this process on a store with one good and one bad record of each kind, and without rules."""
    clock = DrivenClock()
    url = request.getfixturevalue("new_postgres_database") if request.param == "postgres" else str
    store = make_store(request.param, tmp_path_factory.mktemp("damaged"), url, clock)
    fill(store)
    with without_rules(store):
        server = InProcessDashboard(store, clock)
        yield server
        server.close()
    store.close()


def ask(server, path):
    return server.send("GET", path, accept="application/json", authorization=f"Bearer {ROOT_KEY}")


def own_store(server):
    """A store of its own, as another process would have it: it knows no damaged row yet."""
    store = server.engine.store
    if store.name == "sqlite":
        return SqliteStore(store.path, server.clock)
    return PostgresStore(store._url, server.clock)


def test_lists_and_pages_go_on_and_the_row_itself_is_a_precise_error(site):
    store, cookie = site.engine.store, site.sign_in()
    for case in cases_for(store)[::EVERY]:
        with damaged(store, case):
            for path, shown in LISTS.items():
                answer = ask(site, path)
                assert answer.status == 200, (str(case), path, answer.raw)
                assert shown in answer.raw.decode(), (str(case), path, answer.raw)
            for page in PAGES:
                answer = site.send("GET", f"/ui/{page}" if page else "/", cookie=cookie)
                assert answer.status == 200, (str(case), page, answer.raw)
            if case.table in DETAILS:
                answer = ask(site, DETAILS[case.table])
                assert answer.status == 500, (str(case), answer.raw)
                assert "damaged_row" in answer.raw.decode(), (str(case), answer.raw)
                assert "holdfast verify" in answer.raw.decode()


def test_wrong_counts_stop_nothing(site):
    store, cookie = site.engine.store, site.sign_in()
    for statement in COUNTERS:
        write(store, statement)
        for path, shown in LISTS.items():
            answer = ask(site, path)
            assert answer.status == 200, (statement, path, answer.raw)
            assert shown in answer.raw.decode(), (statement, path, answer.raw)
        for page in PAGES[:3]:
            assert site.send("GET", f"/ui/{page}" if page else "/", cookie=cookie).status == 200, (statement, page)
    write(store, "DELETE FROM task_counts WHERE type = 'odd'")
    write(store, "DELETE FROM badges WHERE id = 'odd'")


def test_verify_names_every_damaged_record(site):
    for case in cases_for(site.engine.store)[::EVERY]:
        with damaged(site.engine.store, case):
            store = own_store(site)
            found = verify(store)
            store.close()
        (line,) = found.damaged
        assert line.startswith(f"{case.table} {ACCOUNT} "), str(case)
        assert case.damage in line, str(case)
        assert found.differences == [], str(case)


def test_it_is_logged_once_and_counted(site, caplog):
    store = site.engine.store
    case = next(case for case in cases_for(store) if case.assignment.startswith("acl"))
    with damaged(store, case), caplog.at_level(logging.ERROR, "holdfast.store"):
        before = site.engine.registry.read()
        for _ in range(5):
            assert ask(site, "/v1/jobs").status == 200
            ask(site, "/v1/jobs/bad-leases")
        assert [record.name for record in caplog.records] == ["holdfast.store"]
        assert "bad-leases" in caplog.text
        assert sum(site.engine.registry.read()) > sum(before)
        assert ask(site, "/readyz").json["damaged_rows"] >= 1


def test_a_follower_gets_an_event_in_the_place_of_a_damaged_one(site):
    store = site.engine.store
    case = next(case for case in cases_for(store) if case.assignment.startswith("data"))
    with damaged(store, case):
        with store.read() as reader:
            events = reader.events(ACCOUNT, 0, 1_000)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        (replaced,) = [event for event in events if event.kind == DAMAGED]
        assert "not the JSON" in json.loads(replaced.data)["damage"]


def test_a_request_under_the_key_of_a_damaged_answer_is_refused_and_not_repeated(site):
    store = site.engine.store
    case = next(case for case in cases_for(store) if case.table == "answers")
    with damaged(store, case):
        (outcome,) = transact(store, claim("bad-leases", "l-bad", once=once("bad-key")))
    assert isinstance(outcome, DamagedRow)


@pytest.fixture
def store(request, tmp_path, new_postgres_database, kind):
    clock = DrivenClock()
    store = make_store(kind, tmp_path, new_postgres_database, clock)
    store.clock = clock
    yield store
    store.close()


both = pytest.mark.parametrize("kind", ["sqlite", "postgres"])


@both
@pytest.mark.parametrize("requires", [None, "gpu"])
@pytest.mark.parametrize("has_settings", [False, True], ids=["", "beside a queue with settings"])
def test_claims_skip_damaged_tasks_at_the_head_of_their_queue(store, has_settings, requires):
    transact(store, *(create(f"t{number}", payload="{}", requires=requires) for number in range(6)))
    if has_settings:
        put(store, Queue(ACCOUNT, "other", paused=True))
    with without_rules(store):
        write(store, "UPDATE tasks SET payload = '{' WHERE id IN ('t0', 't1', 't3')")
    able = {"capabilities": requires or ""}
    (outcome,) = transact(store, take("work", **able))
    assert [granted.task.id for granted in outcome.taken] == ["t2"]
    (outcome,) = transact(store, take(**able))
    assert [granted.task.id for granted in outcome.taken] == ["t4"]
    (outcome,) = transact(store, take(limit=5, **able))
    assert [granted.task.id for granted in outcome.taken] == ["t5"]


@pytest.mark.parametrize("kind", ["postgres"])
@pytest.mark.parametrize("requires", [None, "gpu"])
def test_a_claim_beside_damaged_tasks_is_told_of_one_that_another_server_has_locked(store, requires):
    transact(store, *(create(f"t{number}", payload="{}", requires=requires) for number in range(3)))
    with without_rules(store):
        write(store, "UPDATE tasks SET payload = '{' WHERE id IN ('t0', 't1')")
    requiring = ((ACCOUNT, "work", requires, ""),) if requires else ()
    claim = AllNeeds.of([Needs(ready=((ACCOUNT, "work", 1),), requiring=requiring)])
    other = PostgresStore(store._url, store.clock)
    with store.transaction() as first, other.transaction() as second:
        first.load(AllNeeds.of([Needs(rows=((Task.table, ACCOUNT, "t2"),))]))
        view = View(second.load(claim))
        assert view.has_locked_tasks(second.count_claimable(claim))
    with other.transaction() as second:
        view = View(second.load(claim))
        assert view.next_ready(ACCOUNT, ("work",), requires or "").id == "t2"
        assert not view.has_locked_tasks(second.count_claimable(claim))
    other.close()


@both
@pytest.mark.parametrize("types", [("work",), ()])
def test_damaged_tasks_hide_none_that_require_something_else_from_a_claim_with_many_capabilities(store, types):
    transact(store, create("t0", payload="{}", requires="a"), create("t1", payload="{}", requires="b"))
    with without_rules(store):
        write(store, "UPDATE tasks SET payload = '{' WHERE id = 't0'")
    (outcome,) = transact(store, take(*types, capabilities="a,b,c,d,e"))
    assert [granted.task.id for granted in outcome.taken] == ["t1"]


@both
@pytest.mark.parametrize("requires", [None, "gpu"])
def test_a_queue_with_damaged_settings_hides_no_task_of_another_from_a_claim_of_any_type(store, requires):
    tasks = [create(f"t{number}", requires=requires) for number in range(4)]
    transact(store, *tasks, create("u1", type="other", requires=requires))
    put(store, Queue(ACCOUNT, "work"))
    write(store, "UPDATE queues SET changed_at = -1")
    able = {"capabilities": requires or ""}
    outcomes = transact(store, take("work", **able), take(**able))
    assert isinstance(outcomes[0], Empty), "nobody knows its limits"
    assert [granted.task.id for granted in outcomes[1].taken] == ["u1"]


@both
def test_no_task_of_a_queue_with_damaged_settings_is_claimed_by_id(store):
    transact(store, create("t1"), create("u1", type="other"))
    put(store, Queue(ACCOUNT, "work", paused=True))
    write(store, "UPDATE queues SET changed_at = -1")
    refused, claimed = transact(store, take_this("t1"), take_this("u1"))
    assert isinstance(refused, DamagedRow)
    assert [granted.task.id for granted in claimed.taken] == ["u1"]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_blob_in_any_column_of_a_row_fails_no_other_command_of_its_batch(store):
    transact(store, *(claim(name, f"l-{name}") for name in ("good", "bad")), create("good"), create("bad"))
    transact(store, take_this("good"), take_this("bad"))
    commands = [verb for name in ("good", "bad") for verb in (heartbeat(name, f"l-{name}"), beat(name))]
    with without_rules(store):
        for row_type in (Lease, Task):
            for column in sorted({*row_type.__struct_fields__} - row_type.booleans - {"account", "id"}):
                ((before,),) = write(store, f"SELECT quote({column}) FROM {row_type.table} WHERE id = 'bad'")
                for blob in (BLOB, "x'41'"):
                    write(store, f"UPDATE {row_type.table} SET {column} = {blob} WHERE id = 'bad'")
                    outcomes = transact(store, *commands)
                    failed = [isinstance(each, Exception) for each in outcomes]
                    assert failed == [False, False, row_type is Lease, row_type is Task], (column, outcomes)
                    (error,) = (each for each in outcomes if isinstance(each, DamagedRow))
                    assert error.columns[column] in {b"\xffA", b"A"}, column
                write(store, f"UPDATE {row_type.table} SET {column} = {before} WHERE id = 'bad'")


@both
def test_a_damaged_reservation_keeps_its_paths_and_is_in_the_way_of_no_others(store):
    transact(store, reserve("good", "good/"), reserve("bad", "bad/"))
    with without_rules(store):
        write(store, "UPDATE reservations SET metadata = '{' WHERE id = 'bad'")
    commands = [reserve("r1", "new/"), reserve("r2", "bad/x"), renew("good"), renew("bad"), reserve("r3", "good/x")]
    kinds = [type(outcome) for outcome in transact(store, *commands)]
    assert kinds == [Reserved, DamagedRow, ChangedReservation, DamagedRow, FilesHeld]
    with without_rules(store):
        write(store, "UPDATE reservations SET paths = '[1]' WHERE id = 'bad'")
    commands = [reserve("r4", "bad/x", space="another"), reserve("r5", "bad/x")]
    assert [type(outcome) for outcome in transact(store, *commands)] == [Reserved, DamagedRow]
    assert type(transact(store, reserve("r6", "newer/"))[0]) is Reserved


@both
def test_a_damaged_row_that_has_ended_fails_no_other_command_of_its_batch(store):
    transact(store, reserve("bad", "bad/"), create("bad", unique_key="k", payload="{}"), take("work"))
    transact(store, complete("bad"), release_paths("bad"))
    with without_rules(store):
        write(store, "UPDATE reservations SET metadata = '{' WHERE id = 'bad'")
        write(store, "UPDATE tasks SET payload = '{' WHERE id = 'bad'")
    commands = [renew("bad"), reserve("r1", "bad/x"), cancel("bad"), create("t1", unique_key="k")]
    kinds = [type(outcome) for outcome in transact(store, *commands)]
    assert kinds == [DamagedRow, Reserved, DamagedRow, Created]


@both
def test_a_list_with_damaged_rows_in_every_page_still_ends_at_its_end(store):
    transact(store, *(create(f"t{number:02}", payload="{}") for number in range(20)))
    with without_rules(store):
        write(store, "UPDATE tasks SET payload = '{' WHERE id >= 't03' AND id < 't15'")
    with store.read() as reader:
        seen, cursor = [], ("", "")
        while page := reader.rows_after(Task, *cursor, 2):
            seen += [row.id for row in page]
            cursor = page[-1].key[1:]
    assert seen == [f"t{number:02}" for number in (*range(3), *range(15, 20))]


@both
def test_the_sweep_frees_everything_beside_damaged_rows(store, caplog):
    damage = BLOB if store.name == "sqlite" else "'nope'"
    fill(store)
    with without_rules(store):
        write(store, f"UPDATE leases SET ended = {damage} WHERE id = 'bad-leases'")
        write(store, "UPDATE tasks SET backoff = '7' WHERE id = 'bad-tasks'")
        write(store, "UPDATE leases SET session = 'absent', ephemeral = TRUE WHERE id = 'good-leases'")
        write(store, f"UPDATE sessions SET opened_at = -1 WHERE id = '{BAD_SESSION}'")
        write(store, f"UPDATE reservations SET paths = '[1]' WHERE id = '{RESERVATIONS['bad']}'")
    server = InProcessDashboard(store, store.clock)
    try:
        with caplog.at_level(logging.WARNING):
            store.clock.advance(2 * TTL / 1_000_000)
            server.engine.sweep.wake()

            def are_freed():
                with store.read() as reader:
                    left = reader.due(100)
                return {key[2] for key in left} == {"bad-leases", "bad-tasks", SESSIONS["bad"], RESERVATIONS["bad"]}

            wait_until(are_freed)
            wait_until(lambda: len(server.engine.sweep.failed_rows.set_aside) == 4)
            commands = server.engine.registry.read()[metric_names.COMMANDS.at()]
            for _ in range(5):
                server.engine.sweep._run_once()
            assert server.engine.registry.read()[metric_names.COMMANDS.at()] == commands, "they are left alone"
        assert sum("bad-leases" in record.getMessage() for record in caplog.records) == 1
        assert ask(server, "/readyz").status == 200
        write(store, "UPDATE leases SET ended = NULL WHERE id = 'bad-leases'")
        server.engine.sweep.failed_rows.set_aside.clear()  # the minute is over
        server.engine.sweep.wake()
        wait_until(lambda: ask(server, "/v1/jobs/bad-leases").json.get("status") == "free")
    finally:
        server.close()
    with store.read() as reader:
        assert reader.row(Task, ACCOUNT, "good-tasks").state == PENDING != CLAIMED


@both
def test_a_backup_copies_or_lists_damaged_rows_and_can_be_restored(store, tmp_path):
    fill(store)
    with without_rules(store):
        write(store, "UPDATE tasks SET state = 'asleep' WHERE id = 'bad-tasks'")
        write(store, "UPDATE leases SET metadata = '{' WHERE id = 'bad-leases'")
        write(store, f"UPDATE sessions SET principal = NULL WHERE id = '{BAD_SESSION}'")
    url = f"sqlite:///{store.path}" if store.name == "sqlite" else store._url
    path = Path(tmp_path / "backup.db")
    header = backup(Settings(store=url), path, lambda *_: None)
    assert {line.split()[0] for line in header.damaged} >= {"leases", "tasks", "sessions"}
    restore(Settings(store=f"sqlite:///{tmp_path}/restored.db"), path, lambda *_: None)
    restored = SqliteStore(tmp_path / "restored.db")
    with restored.read() as reader:
        assert reader.row(Task, ACCOUNT, "good-tasks").state == PENDING
    assert any(line.startswith("leases default bad-leases") for line in verify(restored).damaged)
    restored.close()
