"""Requirements of a local task queue: claim, recovery, sessions, event log, retries and alerts, one test each.

Tests without waiting use HTTP. Where time must pass, an embedded engine runs with a clock that the test advances.
"""

import hashlib
import json
import re

import pytest

from holdfast.core.errors import LeaseLost, LeaseSuperseded
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, COMPLETED, DEAD, PENDING, Handover
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.recovery import Recover
from holdfast.engine.verbs.tasks.claiming import Busy, Claimed
from holdfast.store.sqlite import SqliteStore
from tests import task_commands as commands
from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import register
from tests.compat.orchestrion.expect import claimed, created
from tests.compat.orchestrion.states import dead, held, pending
from tests.http.job_client import Callers, job_path
from tests.http.replies import done, events, nothing_changes, refused, refused_as_problem
from tests.http.session_client import beat, begin, path, resume, write
from tests.support import ACCOUNT, CAUSE, DrivenClock, stop_in_time

pytest_plugins = ["tests.http.fresh_accounts", "tests.http.embedded_engines"]

LEASE_SECONDS = commands.LEASE // SECOND


def test_the_embedded_engine_claims_renews_releases_and_recovers_on_a_local_file(tmp_path):
    clock = DrivenClock()
    store = SqliteStore(tmp_path / "work.db", clock)
    store.open()
    engine = Engine(store)
    engine.start()
    try:
        engine.call(commands.create("t1"))
        taken = engine.call(commands.take("work"))
        assert isinstance(taken, Claimed)
        assert taken.taken[0].lease_id == commands.lease_of("t1")
        assert engine.call(commands.beat("t1")).task.state == CLAIMED
        assert engine.call(commands.release_task("t1")).task.state == PENDING
        engine.call(commands.take("work", seed="s2"))
        engine.sweep.stop()  # so that the sweep does not recover it first
        clock.advance(LEASE_SECONDS)
        recover = Recover(account=ACCOUNT, cause=CAUSE, due=tuple(engine.read(lambda reader: reader.due(10))))
        assert [(row.id, row.state) for row in engine.call(recover).ended] == [("t1", PENDING)]
        assert engine.call(recover).ended == ()
    finally:
        stop_in_time(engine)
        store.close()


def test_a_lane_with_a_task_in_flight_answers_busy_to_other_claims(account):
    life = begin(account, lane=True)
    mine = pending(account)
    pending(account)
    assert claimed(account.claim(session_id=life["session_id"]))["id"] == mine["id"]
    busy = done(account.claim(session_id=life["session_id"], wait_seconds=30))
    assert (busy["task"], busy["message"], busy["inFlight"]) == (None, "busy", mine["id"])


def test_one_of_several_claimers_takes_over_an_expired_task(library):
    library.call(commands.begin("s1"))
    library.call(commands.create("t1"))
    first = library.call(commands.take_this("t1", seed="a")).taken[0].task
    library.clock.advance(LEASE_SECONDS)
    with Callers() as callers:
        sent = [callers._pool.submit(library.attempt, commands.take_this("t1", seed=f"b{n}")) for n in range(6)]
        winners = [outcome for outcome in (future.result(5) for future in sent) if isinstance(outcome, Claimed)]
    (second,) = (winner.taken[0].task for winner in winners)
    assert (second.attempt, second.token > first.token) == (2, True)
    again = library.call(commands.begin("s1", seed="life-2"))
    assert (again.session.generation, again.resumed) == (2, True)


def test_a_resumed_session_gets_its_task_back(account):
    life = begin(account, lane=True)
    mine = claimed(account.do("claim", pending(account)["id"], session_id=life["session_id"]))
    (task,) = resume(account, life)["tasks"]
    assert (task["id"], task["fencingToken"] > mine["fencingToken"]) == (mine["id"], True)
    done(account.do("complete", task["id"], lease_id=task["leaseId"]))


def test_a_session_heartbeat_extends_job_task_and_session_and_a_wrong_lease_id_nothing(account):
    life = begin(account)
    bound = {"session_id": life["session_id"]}
    task = claimed(account.do("claim", pending(account)["id"], **bound))
    job = done(account.post(job_path("lock", "/claim"), {"owner": "me", **bound}))
    with nothing_changes(account):
        refused_as_problem(account.post(path(life, "/heartbeat"), {"lease_id": task["leaseId"]}), 409, "lease_lost")
    renewed = done(beat(account, life))
    assert renewed["expires_at"] > life["expires_at"]
    assert renewed["jobs"][0]["expires_at"] > job["expires_at"]
    assert done(account.read_task(task["id"]))["leaseExpiresAt"] > task["leaseExpiresAt"]


def test_a_failure_is_idempotent_keeps_reason_and_code_and_frees_the_lane(account):
    life = begin(account, lane=True)
    mine = claimed(account.do("claim", pending(account)["id"], session_id=life["session_id"]))
    outcome = {"lease_id": mine["leaseId"], "reason": "no route", "error_code": "ETIMEDOUT"}
    outcome["retry_after_seconds"] = 0
    failed = done(account.do("fail", mine["id"], **outcome))
    assert (failed["previousAttempt"]["reason"], failed["previousAttempt"]["errorCode"]) == ("no route", "ETIMEDOUT")
    with nothing_changes(account):
        assert done(account.do("fail", mine["id"], **outcome)) == failed
    assert claimed(account.claim(session_id=life["session_id"]))["id"] == mine["id"]


def test_only_the_session_that_did_not_renew_expires_and_only_its_task_is_pending_again(library):
    for name in ("s1", "s2"):
        begun = library.call(commands.begin(name))
        library.call(commands.create(f"t-{name}"))
        library.call(commands.take_this(f"t-{name}", session_id=name))
    library.later(50)
    library.call(commands.heartbeat_session("s2", lease_id=begun.lease_id))
    library.later(20)
    library.becomes(PENDING, "t-s1")
    assert library.kinds("session:s1") == ["session.opened", "session.expired"]
    assert library.kinds("task:t-s1") == ["task.created", "task.claimed", "task.expired"]
    assert library.task("t-s2").state == CLAIMED
    assert library.kinds("session:s2") == ["session.opened", "session.renewed"]


def test_every_change_is_logged_once_with_its_actor_and_without_gaps(account):
    mine = held(account)
    caller = account.with_headers(Idempotency_Key="once")
    for _ in range(3):
        done(caller.post(f"/v1/tasks/{mine['id']}/complete", {}))
    told = events(account, f"subject=task:{mine['id']}")
    assert [(event["kind"], event["version"]) for event in told] == [
        ("task.created", 1),
        ("task.claimed", 2),
        ("task.completed", 3),
    ]
    assert all(event["actor"] and event["request_id"] for event in told)
    assert [event["seq"] for event in events(account)] == [1, 2, 3, 4, 5]


def test_a_checkpoint_that_can_be_read_is_already_in_the_log(account):
    mine = held(account)

    def work():
        for page in range(40):
            done(account.do("heartbeat", mine["id"], lease_id=mine["leaseId"], checkpoint={"page": page}))

    with Callers() as callers:
        working = callers._pool.submit(work)
        seen = -1
        while seen < 39:
            checkpoint = done(account.read_task(mine["id"])).get("checkpoint")
            if checkpoint is not None:
                seen = checkpoint["page"]
                written = hashlib.sha256(json.dumps(checkpoint, separators=(",", ":")).encode()).hexdigest()
                assert written in json.dumps(done(account.get(f"/v1/tasks/{mine['id']}/events")))
        working.result(5)


def test_a_resumed_session_reads_the_context_that_was_written(account):
    told = {"turn": 12, "last_action": "a", "next_action": "b", "context_hash": "c", "memory_ref": "d"}
    life = begin(account)
    done(write(account, life, **told))
    again = resume(account, life)
    assert {name: again[name] for name in told} == told


def test_a_second_create_with_a_unique_key_returns_the_live_task(account):
    first = created(account.create(uniqueKey="daily"))
    again = done(account.create(uniqueKey="daily"))
    assert (again["id"], again["deduplicated"]) == (first["id"], True)


def test_retries_wait_for_their_backoff_and_dead_letters_can_be_resolved_and_requeued(library, account):
    policy = '{"kind":"exponential","base_seconds":10,"jitter":0.5}'
    library.call(commands.create("t1", max_attempts=2, backoff=policy))
    library.call(commands.take("work"))
    due = library.call(commands.fail("t1", random_fraction=1.0)).task.scheduled_at
    assert due == library.clock.now + 5 * SECOND
    library.later(4.9)
    assert not isinstance(library.call(commands.take("work", seed="s2")), Claimed)
    library.later(0.2)
    assert isinstance(library.call(commands.take("work", seed="s2")), Claimed)
    assert library.call(commands.fail("t1", "s2")).task.state == DEAD
    letter = dead(account)
    assert done(account.do("resolve", letter["id"]))["resolvedAt"]
    assert done(account.do("requeue", letter["id"], reset_attempts=False))["attemptCount"] == 1


def test_conflicts_lapses_and_dead_letters_are_counted_and_an_alert_is_logged_once(tmp_path):
    server = Server(f"sqlite:///{tmp_path}/x.db", ALERT_CONFLICTS="2", ALERT_LAPSES="5", ALERT_DEAD_LETTERS="1").start()
    try:
        account = register(server.anyone)
        mine = held(account)
        for _ in range(4):
            refused(account.do("claim", mine["id"]), 409, "task_currently_claimed")
        dead(account)
        done(account.post(job_path("short", "/claim"), {"owner": "me", "ttl_seconds": 1}))
        done(account.get("/v1/events?after=0&kind=lease.expired&wait_seconds=10"))
        alerts = server.anyone.get("/status").json["alerts"]
        assert alerts["conflicts"] == {"total": 4, "last_hour": 4, "alert": True}
        assert alerts["dead_letters"] == {"total": 1, "last_hour": 1, "alert": False}
        assert alerts["lapses"] == {"total": 1, "last_hour": 1, "alert": False}
        assert len(re.findall("conflicts in the last hour, more than 2", server.log())) == 1
        assert "lapses in the last hour" not in server.log()
        assert "dead letters in the last hour" not in server.log()
    finally:
        server.close()


def test_sqlite_and_postgresql_give_the_same_answers_and_events(sqlite_server, postgres_server):
    told = [run_scenario(register(server.anyone)) for server in (sqlite_server, postgres_server)]
    assert len(told[0]) > 30
    assert told[0] == told[1]


def test_creator_reviewer_and_source_are_kept_with_the_task_and_its_first_event(account):
    labels = {"createdBy": "alice", "reviewedBy": "bob", "source": "ticket 42"}
    mine = held(account, **labels)
    done(account.complete(mine["id"]))
    seen = done(account.read_task(mine["id"]))
    assert {name: seen[name] for name in labels} == labels
    first = events(account, f"subject=task:{mine['id']}")[0]["data"]
    assert (first["created_by"], first["reviewed_by"], first["source"]) == ("alice", "bob", "ticket 42")


def test_claim_renew_complete_takeover_and_resume_in_one_scenario(library):
    """A second claim of a lane is busy, a repeated completion logs nothing, and superseded holders are refused."""
    former = library.call(commands.begin("s1", lane=True))
    for name in ("t1", "t2"):
        library.call(commands.create(name))
    library.call(commands.take("work", session_id="s1"))
    assert isinstance(library.call(commands.take("work", seed="x", session_id="s1")), Busy)
    library.call(commands.beat("t1", handover=Handover(checkpoint="1")))
    assert library.call(commands.complete("t1")).task.state == COMPLETED
    library.call(commands.complete("t1"))
    assert library.kinds("task:t1") == ["task.created", "task.claimed", "task.renewed", "task.completed"]
    library.call(commands.take_this("t2", seed="late"))
    library.clock.advance(LEASE_SECONDS)
    library.call(commands.take_this("t2", seed="next"))
    with pytest.raises(LeaseSuperseded):
        library.call(commands.complete("t2", "late"))
    assert library.call(commands.complete("t2", "next")).task.state == COMPLETED
    library.call(commands.begin("s1", seed="life-2"))
    with pytest.raises(LeaseLost):
        library.call(commands.heartbeat_session("s1", lease_id=former.lease_id))


def run_scenario(account):
    """Answers and events of a fixed sequence of requests, without names and times, to compare two stores."""
    said = []

    def say(answer):
        body = answer.json
        said.append((answer.status, body.get("status"), body.get("error"), body.get("attemptCount")))
        return body

    life = say(account.post("/v1/sessions", {"name": "me", "turn": 1}))
    bound = {"session_id": life["session_id"]}
    for fields in ({}, {"priority": 5}, {"uniqueKey": "k"}, {"uniqueKey": "k"}, {"priority": 101}):
        say(account.create(**fields))
    first = say(account.claim(**bound))
    second = say(account.claim(worker_id="w"))
    third = say(account.claim())
    say(account.do("heartbeat", first["id"], checkpoint={"a": 1}, lease_id=first["leaseId"]))
    say(account.do("fail", second["id"], reason="r", error_code="c", retry_after_seconds=60))
    say(account.do("claim", second["id"]))
    say(account.do("cancel", third["id"], mode="request"))
    say(account.do("release", third["id"]))
    say(account.post("/v1/sessions", {"name": "me", "secret": life["secret"], "turn": 2}))
    say(account.do("complete", first["id"], lease_id=first["leaseId"]))
    say(account.delete(f"/v1/sessions/{life['session_id']}"))
    say(account.claim())
    say(account.do("fail", first["id"], permanent=True))
    say(account.do("resolve", first["id"]))
    say(account.do("requeue", first["id"]))
    say(account.get("/v1/tasks/counts"))
    told = [(event["seq"], event["kind"], event["version"], sorted(event["data"])) for event in events(account)]
    return said + told
