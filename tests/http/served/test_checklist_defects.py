"""Faults that task queues on SQLite commonly have, such as lost retries and late holders: none of them occurs here."""

import sqlite3

import psycopg
import pytest

from holdfast.core.errors import HoldfastError, LeaseExpired, StoreUnavailable
from holdfast.core.row import SECOND
from holdfast.core.task import DEAD, PENDING
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.tasks.claiming import Claimed
from holdfast.settings import sqlite_path
from tests import task_commands as commands
from tests.compat.orchestrion.states import dead, held
from tests.http.replies import done, events
from tests.postgres import AS_SERVER
from tests.support import make_store, stop_in_time, wait_until

pytest_plugins = ["tests.http.fresh_accounts", "tests.http.embedded_engines"]

LEASE_SECONDS = commands.LEASE // SECOND


def test_a_task_whose_lease_expired_can_be_claimed_again(library):
    library.call(commands.create("t1"))
    for seed in ("a", "b"):
        library.call(commands.take("work", seed=seed))
        library.later(LEASE_SECONDS)
        library.becomes(PENDING)
    assert library.call(commands.take("work", seed="c")).taken[0].task.attempt == 3


def test_every_failure_and_every_expiry_is_logged_not_only_the_first(library):
    library.call(commands.begin("s1"))
    library.call(commands.create("t1", max_attempts=10))
    for seed in ("a", "b"):
        library.call(commands.take("work", seed=seed))
        library.call(commands.fail("t1", seed))
    for life in ("life-2", "life-3"):
        library.later(61)
        wait_until(lambda: library.kinds("session:s1")[-1] == "session.expired")
        library.call(commands.begin("s1", seed=life))
    assert library.kinds("task:t1") == ["task.created"] + ["task.claimed", "task.failed"] * 2
    assert library.kinds("session:s1") == ["session.opened"] + ["session.expired", "session.resumed"] * 2


@pytest.mark.parametrize("change", ["DELETE FROM events", "UPDATE events SET kind = 'nothing'"])
def test_the_log_cannot_be_changed_by_sql(account, server, change):
    before = events(account)
    if server.store.startswith("sqlite"):
        with sqlite3.connect(sqlite_path(server.store)) as connection, pytest.raises(sqlite3.IntegrityError):
            connection.execute(change)
        connection.close()
    else:
        with (
            psycopg.connect(server.store, options=AS_SERVER) as connection,
            pytest.raises(psycopg.errors.RaiseException),
        ):
            connection.execute(change)
    assert events(account) == before


def test_a_task_whose_lease_expires_on_every_attempt_becomes_a_dead_letter(library):
    library.call(commands.create("t1", max_attempts=3))
    for attempt_number in range(3):
        library.call(commands.take("work", seed=f"s{attempt_number}"))
        library.later(LEASE_SECONDS)
        library.becomes(DEAD if attempt_number == 2 else PENDING)
    assert library.task().dead_cause == "lease_expired"
    assert not isinstance(library.call(commands.take("work", seed="s9")), Claimed)


@pytest.mark.parametrize("verb", [commands.beat, commands.complete, commands.fail, commands.release_task])
def test_a_holder_whose_lease_expired_is_refused_before_the_next_claim(library, verb):
    library.call(commands.create("t1"))
    library.call(commands.take("work"))
    library.clock.advance(LEASE_SECONDS)
    with pytest.raises(LeaseExpired):
        library.call(verb("t1"))


def test_a_heartbeat_of_an_expired_session_is_refused(library):
    begun = library.call(commands.begin("s1"))
    library.clock.advance(60)
    with pytest.raises(HoldfastError) as refusal:
        library.call(commands.heartbeat_session("s1", lease_id=begun.lease_id))
    assert refusal.value.code == "session_expired"


def test_a_scheduled_task_is_claimed_when_it_is_due_and_gets_a_lease(library):
    library.call(commands.create("t1", scheduled_at=library.clock.now + 5 * SECOND))
    assert not isinstance(library.call(commands.take("work")), Claimed)
    library.later(5)
    taken = library.call(commands.take("work", seed="s2")).taken[0].task
    assert taken.expires_at == library.clock.now + commands.LEASE


def test_there_is_one_status_for_pending_and_one_for_dead_letters(account):
    ways = [held(account), held(account), held(account)]
    waiting = {
        done(account.do(verb, task["id"]))["status"] for verb, task in zip(("fail", "release"), ways, strict=False)
    }
    given_up = {done(account.fail(ways[2]["id"], permanent=True))["status"], dead(account)["status"]}
    assert (waiting, given_up) == ({"pending"}, {"dead_letter"})
    assert done(account.get("/v1/tasks/counts"))["total"].keys() == {
        "pending", "claimed", "completed", "dead_letter", "cancelled",
    }  # fmt: skip


def test_a_failed_recovery_is_counted(tmp_path, monkeypatch):
    store = make_store("sqlite", tmp_path, str)
    engine = Engine(store)
    engine.start()
    try:
        with monkeypatch.context() as trouble:
            trouble.setattr(store, "read", broken)
            engine.sweep.wake()
            wait_until(lambda: engine.alerts.report()["recovery_failures"]["total"])
    finally:
        stop_in_time(engine)
        store.close()


def broken(*_):
    raise StoreUnavailable("the store is away")


def test_a_task_with_three_attempts_is_dead_after_the_third_failure(library):
    library.call(commands.create("t1", max_attempts=3))
    states = []
    for number in range(3):
        library.call(commands.take("work", seed=f"s{number}"))
        states.append(library.call(commands.fail("t1", f"s{number}")).task.state)
    assert states == [PENDING, PENDING, DEAD]
