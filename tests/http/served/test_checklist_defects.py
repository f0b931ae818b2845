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
from tests.support import make_store, stop_in_time, wait_until

pytest_plugins = ["tests.http.fresh_accounts", "tests.http.embedded_engines"]

LEASE_SECONDS = commands.LEASE // SECOND


def test_defect_1_a_task_that_came_back_from_a_dead_worker_is_claimed_again(library):
    library.call(commands.create("t1"))
    for seed in ("a", "b"):
        library.call(commands.take("work", seed=seed))
        library.later(LEASE_SECONDS)
        library.becomes(PENDING)
    assert library.call(commands.take("work", seed="c")).taken[0].task.attempt == 3


def test_defect_2_every_outcome_and_every_lapse_is_logged_not_only_the_first(library):
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
def test_defect_3_the_log_cannot_be_changed_not_even_by_hand(account, server, change):
    before = events(account)
    if server.store.startswith("sqlite"):
        with sqlite3.connect(sqlite_path(server.store)) as connection, pytest.raises(sqlite3.IntegrityError):
            connection.execute(change)
        connection.close()
    else:
        with psycopg.connect(server.store) as connection, pytest.raises(psycopg.errors.RaiseException):
            connection.execute(change)
    assert events(account) == before


def test_defect_4_a_task_that_keeps_killing_its_worker_is_given_up(library):
    library.call(commands.create("t1", max_attempts=3))
    for attempt_number in range(3):
        library.call(commands.take("work", seed=f"s{attempt_number}"))
        library.later(LEASE_SECONDS)
        library.becomes(DEAD if attempt_number == 2 else PENDING)
    assert library.task().dead_cause == "lease_expired"
    assert not isinstance(library.call(commands.take("work", seed="s9")), Claimed)


@pytest.mark.parametrize("verb", [commands.beat, commands.complete, commands.fail, commands.hand_back])
def test_defect_5_a_late_holder_is_refused_although_nobody_has_claimed_it_since(library, verb):
    library.call(commands.create("t1"))
    library.call(commands.take("work"))
    library.clock.advance(LEASE_SECONDS)
    with pytest.raises(LeaseExpired):
        library.call(verb("t1"))


def test_defect_5_a_late_session_is_refused_as_well(library):
    library.call(commands.begin("s1"))
    library.clock.advance(60)
    with pytest.raises(HoldfastError) as refusal:
        library.call(commands.heartbeat_session("s1"))
    assert refusal.value.code == "session_expired"


def test_defect_6_a_claim_always_has_a_lease_and_honours_the_due_time(library):
    library.call(commands.create("t1", scheduled_at=library.clock.now + 5 * SECOND))
    assert not isinstance(library.call(commands.take("work")), Claimed)
    library.later(5)
    taken = library.call(commands.take("work", seed="s2")).taken[0].task
    assert taken.expires_at == library.clock.now + commands.LEASE


def test_defect_7_there_is_one_word_for_waiting_and_one_for_dead(account):
    ways = [held(account), held(account), held(account)]
    waiting = {
        done(account.do(verb, task["id"]))["status"] for verb, task in zip(("fail", "release"), ways, strict=False)
    }
    given_up = {done(account.fail(ways[2]["id"], permanent=True))["status"], dead(account)["status"]}
    assert (waiting, given_up) == ({"pending"}, {"dead_letter"})
    assert done(account.get("/v1/tasks/counts"))["total"].keys() == {
        "pending", "claimed", "completed", "dead_letter", "cancelled",
    }  # fmt: skip


def test_defect_8_a_recovery_that_fails_is_counted(tmp_path, monkeypatch):
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


def test_defect_10_three_attempts_are_three(library):
    library.call(commands.create("t1", max_attempts=3))
    states = []
    for number in range(3):
        library.call(commands.take("work", seed=f"s{number}"))
        states.append(library.call(commands.fail("t1", f"s{number}")).task.state)
    assert states == [PENDING, PENDING, DEAD]
