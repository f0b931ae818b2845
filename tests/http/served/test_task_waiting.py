"""Waiting for tasks: claims wait for a task, reads for an outcome; a caller that disconnected gets nothing."""

import json
import select
import socket
import sqlite3
import time
from contextlib import contextmanager

import psutil
import psycopg
import pytest

from holdfast.settings import sqlite_path
from tests.compat.octostore.expect import eventually
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.expect import claimed, no_tasks
from tests.compat.orchestrion.states import held, pending
from tests.faults.raw_socket import read_answer
from tests.fronted_server import tcp_connections
from tests.http.job_client import Callers, fresh
from tests.http.replies import claimed_many, done, events, nothing_changes, refused
from tests.proof_size import sized
from tests.support import wait_until
from tests.telemetry.conftest import Watch

pytestmark = pytest.mark.waits(8)

pytest_plugins = ["tests.http.fresh_accounts"]

IDLE_SECONDS = sized(1, 45)
SETTLED_SECONDS = 0.3
"""After this time without an answer a claim is taken to wait in the queue, also on a busy machine."""


class Waiter:
    """A claim on its own connection, which the test can watch and close."""

    def __init__(self, account, **fields):
        body = json.dumps(fields).encode()
        headers = {"Host": "x", **account.headers, "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.connection = socket.create_connection(("127.0.0.1", account.port), timeout=5)
        self.connection.sendall(f"POST /v1/tasks/claim HTTP/1.1\r\n{head}\r\n".encode() + body)

    def is_silent(self, seconds):
        return not select.select([self.connection], [], [], seconds)[0]

    def answer(self):
        return read_answer(self.connection)

    def leave(self):
        self.connection.close()


@contextmanager
def waiting(account, **fields):
    """A claim that is waiting in the queue."""
    waiter = Waiter(account, **({"type": "work", "wait_seconds": 15} | fields))
    assert waiter.is_silent(SETTLED_SECONDS)
    yield waiter
    waiter.leave()


@contextmanager
def commits_blocked(server):
    """Lock the store so that no transaction can commit."""
    if server.store.startswith("sqlite"):
        connection = sqlite3.connect(sqlite_path(server.store), isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
    else:
        connection = psycopg.connect(server.store)
        connection.execute("LOCK TABLE event_counters IN EXCLUSIVE MODE")
    try:
        yield
    finally:
        connection.rollback()
        connection.close()


def ask_and_leave(server, account, **fields):
    """Claim a task, and disconnect once the server has the request."""
    leaving = Waiter(account, wait_seconds=15, **fields)
    port = leaving.connection.getsockname()[1]

    def is_accepted():
        processes = [server.process.pid, *(child.pid for child in psutil.Process(server.process.pid).children())]
        return any(each.raddr and each.raddr.port == port for pid in processes for each in tcp_connections(pid))

    wait_until(is_accepted)
    assert leaving.is_silent(SETTLED_SECONDS)
    leaving.leave()
    time.sleep(SETTLED_SECONDS)  # the server notices the disconnect


def same_account_on(server, account):
    """The same account on another server."""
    return Account(server.port, account.headers, token=account.token)


# -- claims ------------------------------------------------------------------------------------------------------


def test_a_waiting_claim_is_not_answered_before_a_matching_task_is_created(account):
    with waiting(account, wait_seconds=60) as waiter:
        for _ in range(3):
            pending(account, type="other")
        assert waiter.is_silent(IDLE_SECONDS)
        made = pending(account)
        assert claimed(waiter.answer())["id"] == made["id"]


def test_a_task_goes_to_the_caller_that_has_waited_longest(server, account):
    watch = Watch(server)

    def are_waiting(count):
        eventually(lambda: watch.value("holdfast_waiters", **{"for": "work"}), lambda seen: seen == count, within=5)

    with waiting(account) as first:
        are_waiting(1)
        with waiting(account) as second:
            are_waiting(2)
            made = pending(account)
            assert claimed(first.answer())["id"] == made["id"]
            assert second.is_silent(SETTLED_SECONDS)


def test_tasks_made_one_by_one_reach_everybody_who_waits(account):
    with Callers() as callers:
        for _ in range(5):
            waiters = [callers.send(account.claim, wait_seconds=15) for _ in range(4)]
            made = [pending(account)["id"] for _ in waiters]
            assert sorted(claimed(waiter.result(5)[0])["id"] for waiter in waiters) == made


def test_ten_tasks_made_at_once_reach_ten_waiters(account):
    with Callers() as callers:
        waiters = [callers.send(account.claim, wait_seconds=15) for _ in range(10)]
        items = [{"op": "create", "type": "work", "payload": {}}] * 10
        made = done(account.post("/v1/tasks/batch", {"items": items}))["results"]
        got = [claimed(waiter.result(5)[0])["id"] for waiter in waiters]
    assert sorted(got) == sorted(result["task"]["id"] for result in made)


def test_a_claim_whose_patience_ends_finds_nothing_to_do(account):
    before = time.monotonic()
    with nothing_changes(account):
        no_tasks(account.claim(wait_seconds=0.4))
    assert 0.4 <= time.monotonic() - before < 3


def test_what_is_there_already_is_not_waited_for(account):
    made = pending(account)
    assert claimed(account.claim(wait_seconds=60))["id"] == made["id"]


@pytest.mark.parametrize("wanted", ["red", "green", "blue"])
def test_a_claim_waits_for_several_types_at_once(account, wanted):
    with waiting(account, type="red", types=["green", "blue"]) as waiter:
        pending(account, type="yellow")
        made = pending(account, type=wanted)
        assert claimed(waiter.answer())["id"] == made["id"]


def test_a_claim_of_any_type_waits_too(account):
    with waiting(account, type=None) as waiter:
        made = pending(account, type="whatever")
        assert claimed(waiter.answer())["id"] == made["id"]


def test_a_waiter_that_asks_for_many_is_served_with_the_first(account):
    with waiting(account, limit=10) as waiter:
        made = pending(account)
        assert [got["id"] for got in claimed_many(waiter.answer())] == [made["id"]]


@pytest.mark.parametrize(
    "free",
    [
        lambda account, mine: account.fail(mine["id"]),
        lambda account, mine: account.do("release", mine["id"]),
        lambda account, mine: account.do("snooze", mine["id"], seconds=0),
        lambda account, mine: account.fail(mine["id"], retry_after_seconds=1),
        lambda account, mine: [account.fail(mine["id"], permanent=True), account.do("requeue", mine["id"])],
    ],
    ids=["failed", "released", "snoozed", "due", "requeued"],
)
def test_work_that_comes_back_is_offered_to_those_who_wait(account, free):
    mine = held(account)
    with waiting(account) as waiter:
        free(account, mine)
        assert claimed(waiter.answer())["id"] == mine["id"]


def test_a_waiter_on_another_server_gets_what_is_made_on_this_one(postgres_server, second_postgres_server):
    here = register(postgres_server.anyone)
    for _ in range(3):
        with waiting(same_account_on(second_postgres_server, here)) as waiter:
            made = pending(here)
            assert claimed(waiter.answer())["id"] == made["id"]


def test_a_waiter_that_left_gets_nothing(account):
    with waiting(account, worker_id="gone"):
        pass
    with waiting(account, worker_id="patient") as patient:
        made = pending(account)
        got = claimed(patient.answer())
    assert (got["id"], got["attempt"]) == (made["id"], 1), "the one who left never had it"


def test_a_task_whose_claimer_left_before_the_grant_is_offered_again(account, server):
    made = pending(account)
    with commits_blocked(server):
        ask_and_leave(server, account, worker_id="gone")
    got = claimed(account.claim(worker_id="next", wait_seconds=5))
    assert (got["id"], got["attemptCount"], got["previousAttempt"]) == (made["id"], 1, None)
    assert [event["kind"] for event in events(account, f"subject=task:{made['id']}")] == [
        "task.created", "task.claimed", "task.undelivered", "task.claimed",
    ]  # fmt: skip


def test_a_claim_with_a_key_whose_caller_left_is_kept_for_its_retry(account, server):
    caller = account.with_headers(Idempotency_Key=fresh())
    made = pending(account)
    with commits_blocked(server):
        ask_and_leave(server, caller)
    got = claimed(caller.post("/v1/tasks/claim", {"wait_seconds": 15}))
    assert (got["id"], got["attempt"]) == (made["id"], 1)
    assert len(events(account, "kind=task.claimed")) == 1


# -- readers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "state"),
    [
        (lambda account, mine: account.complete(mine["id"], result={"n": 1}), "completed"),
        (lambda account, mine: account.do("cancel", mine["id"], mode="force"), "cancelled"),
        (lambda account, mine: account.fail(mine["id"], permanent=True), "dead_letter"),
    ],
    ids=["completed", "cancelled", "dead"],
)
def test_a_waiting_reader_is_answered_as_soon_as_the_task_is_finished(account, finish, state):
    mine = held(account)
    with Callers() as callers:
        reader = callers.send(account.read_task, f"{mine['id']}?wait_seconds=15")
        done(account.do("heartbeat", mine["id"], progress=0.5))
        finish(account, mine)
        assert done(reader.result(5)[0])["status"] == state


def test_a_reader_of_a_finished_task_does_not_wait(account):
    mine = held(account)
    done(account.complete(mine["id"], result={"n": 1}))
    assert done(account.read_task(f"{mine['id']}?wait_seconds=60"))["result"] == {"n": 1}


def test_a_reader_whose_patience_ends_sees_the_task_as_it_is(account):
    mine = held(account)
    before = time.monotonic()
    assert done(account.read_task(f"{mine['id']}?wait_seconds=0.4"))["status"] == "claimed"
    assert 0.4 <= time.monotonic() - before < 3


def test_a_reader_of_a_task_that_is_not_there_does_not_wait(account, stranger):
    theirs = pending(stranger)
    refused(account.read_task(f"{theirs['id']}?wait_seconds=60"), 404, "task_not_found")


def test_a_waiting_reader_on_another_server_is_answered_too(postgres_server, second_postgres_server):
    here = register(postgres_server.anyone)
    mine = held(here)
    with Callers() as callers:
        reader = callers.send(same_account_on(second_postgres_server, here).read_task, f"{mine['id']}?wait_seconds=15")
        done(here.complete(mine["id"], result={"n": 2}))
        assert done(reader.result(5)[0])["result"] == {"n": 2}
