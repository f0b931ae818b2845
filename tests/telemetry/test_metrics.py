"""Metrics of one server on both stores: each changes when its event happens."""

import time

from tests.compat.octostore.expect import acquired, leads, released, success
from tests.compat.orchestrion.account import register
from tests.http.job_client import Callers, agent, claimed, fresh, held
from tests.streams.reading import follow
from tests.support import wait_until


def test_jobs_locks_and_elections_are_counted_each_in_its_family(server, watch):
    alice, job, lock, room = agent(server), fresh(), fresh("lock"), fresh("room")
    lease = claimed(alice.claim(job))
    held(alice.claim(job))
    success(alice.heartbeat(job, lease["lease_id"]))
    success(alice.release_job(job, lease["lease_id"]))
    taken = acquired(alice.acquire(lock))
    released(alice.release(lock, taken["lease_id"]))
    leads(server.anyone.campaign(room, "me"))
    for family, outcome in (("job", "granted"), ("job", "held"), ("lock", "granted"), ("election", "granted")):
        assert watch.more("holdfast_claims_total", family=family, outcome=outcome) == 1, (family, outcome)
    assert watch.more("holdfast_contended_claims_total", family="job") == 1
    assert watch.more("holdfast_renewals_total", family="job") == 1
    for family in ("job", "lock"):
        assert watch.more("holdfast_releases_total", family=family, how="released") == 1
    assert watch.more("holdfast_lock_acquires_total") == 2


def test_expiries_with_their_lateness_and_takeovers_are_counted_separately(server, watch):
    alice, job = agent(server), fresh()
    claimed(alice.claim(job, ttl_seconds=1))
    wait_until(lambda: watch.more("holdfast_expiries_total", family="job") == 1, 10)
    assert watch.more("holdfast_takeovers_total", family="job") == 0
    assert watch.more("holdfast_expiry_lateness_seconds_count", family="job") == 1
    assert watch.more("holdfast_expiry_lateness_seconds_sum", family="job") < 3
    claimed(alice.claim(job))
    assert watch.more("holdfast_takeovers_total", family="job") == 1
    assert watch.more("holdfast_expiries_total", family="job") == 1


def test_tasks_are_counted_by_state_with_the_age_of_the_oldest(server, watch):
    account = register(server.anyone)
    kind = fresh("kind")
    first = account.create(type=kind, maxAttempts=1, priority=3).json["id"]
    second = account.create(type=kind, maxAttempts=1).json["id"]
    assert watch.more("holdfast_tasks_created_total") == 2
    assert watch.more("holdfast_tasks", state="pending") == 2
    time.sleep(0.05)  # an age is measured, so some time must pass
    assert watch.value("holdfast_oldest_ready_task_age_seconds") >= 0.05
    for task_id in (first, second):
        lease = account.claim(type=kind).json["task"]
        assert lease["id"] == task_id
        if task_id == first:
            account.complete(task_id, lease_id=lease["leaseId"])
        else:
            account.fail(task_id, lease_id=lease["leaseId"], reason="broken")
    assert watch.value("holdfast_oldest_ready_task_age_seconds") == 0
    assert watch.more("holdfast_tasks_completed_total") == 1
    assert watch.more("holdfast_tasks_failed_total") == 1
    assert watch.more("holdfast_dead_letters_total", cause="attempts_exhausted") == 1
    assert watch.more("holdfast_tasks", state="dead_letter") == 1


def test_batches_waiters_and_loops_are_measured(server, watch):
    alice, job = agent(server), fresh()
    lease = claimed(alice.claim(job))
    with Callers() as callers:
        waiting = callers.send(alice.claim, job, "next", wait_seconds=20)
        wait_until(lambda: watch.value("holdfast_waiters", **{"for": "name"}) == 1)
        alice.release_job(job, lease["lease_id"])
        claimed(waiting.result(10)[0])
    page = watch.page()
    commands, batches = watch.more("holdfast_commands_total"), watch.more("holdfast_batches_total")
    assert 1 <= batches <= commands
    assert page.value("holdfast_batch_commands_count") >= batches
    for phase in ("load", "decide", "save", "commit"):
        assert page.value("holdfast_batch_phase_seconds_count", phase=phase) >= batches
    assert page.value("holdfast_lane_busy_seconds_total") > 0
    assert page.value("holdfast_workers") == 1
    assert page.value("holdfast_backlog_commands") >= 0
    assert abs(page.value("holdfast_loop_last_success_timestamp_seconds", loop="sweep") - time.time()) < 30
    assert page.value("holdfast_loop_last_success_timestamp_seconds", loop="beat") > 0


def test_streams_are_counted_while_they_are_open(server, watch):
    with follow(agent(server)) as stream:
        stream.frame()
        wait_until(lambda: watch.more("holdfast_streams") == 1)
    wait_until(lambda: watch.more("holdfast_streams") == 0)


def test_refused_requests_are_counted_by_reason(server, watch):
    room = fresh("room")
    answers = [server.anyone.campaign(room, "me").status for _ in range(25)]
    assert watch.more("holdfast_refused_total", reason="rate_limited") == answers.count(429) > 0


def test_metric_names_and_kinds_follow_openmetrics(server, watch):
    for name, kind in watch.page().kinds.items():
        assert name.startswith("holdfast_")
        assert not name.endswith("_total"), "OpenMetrics puts that on the samples"
        assert kind in {"counter", "gauge", "histogram", "info"}
    for name, _, value in watch.page().found:
        assert value >= 0, name
