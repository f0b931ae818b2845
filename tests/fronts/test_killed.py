"""Killed fronts and engine processes: callers get an answer or an error, and nothing acknowledged is lost."""

import http.client
import os
import random
import signal
import threading
import time
from contextlib import suppress

import psutil
import pytest

from tests.compat.octostore.expect import eventually
from tests.http.job_client import Callers, agent, claimed, fresh, held, ok, wait_on_a_socket
from tests.proof_size import sized
from tests.support import wait_until

pytestmark = pytest.mark.waits(8)

RESTART_SECONDS = 5
"""Within this time a killed process is replaced, also on a busy machine."""


def is_answered(caller):
    try:
        return caller.claim(fresh(), "me").status == 200
    except OSError:
        return False


def kill(pids, how=signal.SIGKILL):
    for pid in pids:
        os.kill(pid, how)


def test_a_killed_front_is_replaced_and_its_waiters_leave_the_queue(unshared):
    alice, job = agent(unshared), fresh()
    lease = claimed(alice.claim(job, "me"))
    with Callers() as callers:
        waiters = [callers.send(alice.claim, job, f"waiter-{number}", wait_seconds=30) for number in range(4)]
        eventually(lambda: held(alice.claim(job, "x"))["waiting"], lambda seen: seen == 4, within=10)
        kill(unshared.fronts())
        for waiter in waiters:
            assert isinstance(waiter.exception(10), OSError)
    wait_until(lambda: len(unshared.processes()) == 3, RESTART_SECONDS)
    assert held(alice.claim(job, "x"))["waiting"] == 0
    ok(alice.release_job(job, lease["lease_id"]))
    claimed(alice.claim(job, "next"))


def test_claims_of_a_killed_front_that_were_not_answered_are_given_back(unshared):
    alice, job = agent(unshared), fresh()
    task = alice.post("/v1/tasks", {"type": fresh("type"), "payload": {}}).json
    engine, fronts = unshared.engine(), unshared.fronts()
    kill([engine], signal.SIGSTOP)
    with Callers() as callers:
        asked = [callers.send(alice.claim, job, "me"), callers.send(alice.post, f"/v1/tasks/{task['id']}/claim", {})]
        time.sleep(0.3)  # the commands are in the socket between the processes
        kill(fronts)
        assert all(isinstance(each.exception(10), OSError) for each in asked)
    # Their callers' connections may be closed before those to the engine process, which would take an answer.
    wait_until(lambda: not set(fronts) & set(unshared.processes()), 10)
    kill([engine], signal.SIGCONT)
    eventually(
        lambda: kinds(alice, f"lease:{job}"), lambda seen: seen[-1:] == ["lease.undelivered"], within=RESTART_SECONDS
    )
    eventually(
        lambda: kinds(alice, f"task:{task['id']}"),
        lambda seen: seen[-1:] == ["task.undelivered"],
        within=RESTART_SECONDS,
    )
    assert ok(alice.get(f"/v1/tasks/{task['id']}"))["attemptCount"] == 0


def test_a_job_granted_to_a_caller_that_left_unseen_by_its_front_is_given_back(unshared):
    """The front is suspended: it finds the answer and the end of the caller's connection at once."""
    alice, job = agent(unshared), fresh()
    lease = claimed(alice.claim(job, "me"))
    gone = wait_on_a_socket(unshared, alice, job, "gone")
    eventually(lambda: held(alice.claim(job, "x"))["waiting"], lambda seen: seen == 1, within=10)
    fronts = unshared.fronts()
    kill(fronts, signal.SIGSTOP)
    unshared.free_engine()
    gone.close()
    ok(alice.release_job(job, lease["lease_id"]))
    eventually(lambda: alice.owner_of(job)["status"], lambda status: status == "claimed", within=RESTART_SECONDS)
    kill(fronts, signal.SIGCONT)
    eventually(lambda: alice.owner_of(job)["status"], lambda status: status == "free", within=RESTART_SECONDS)
    assert kinds(alice, f"lease:{job}")[-1] == "lease.undelivered"


def kinds(caller, subject):
    return [event["kind"] for event in ok(caller.get(f"/v1/events?subject={subject}"))["events"]]


def test_a_killed_engine_is_replaced_and_nothing_acknowledged_is_lost(unshared):
    alice, granted = agent(unshared), {}
    for _ in range(50):
        job = fresh()
        granted[job] = claimed(alice.claim(job, "me"))
    killed = unshared.engine()
    kill([killed])
    wait_until(lambda: is_answered(alice), RESTART_SECONDS)
    for job, lease in granted.items():
        assert held(alice.claim(job, "you"))["owner"] == "me"
        ok(alice.heartbeat(job, lease["lease_id"]))
    assert claimed(alice.claim(fresh(), "me"))["token"] > max(lease["token"] for lease in granted.values())
    assert killed not in unshared.processes()


def test_nothing_acknowledged_is_lost_while_fronts_and_engine_are_killed_at_random(unshared):
    rng, granted, over = random.Random(7), {}, threading.Event()

    def work(number):
        caller = agent(unshared)
        while not over.is_set():
            job = fresh()
            with suppress(OSError, EOFError, http.client.HTTPException):  # its process was killed
                answer = caller.claim(job, f"worker-{number}", ttl_seconds=600)
                assert answer.status in {200, 503}, answer
                if answer.status == 200:
                    granted[job] = claimed(answer)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for _ in range(sized(2, 40)):
        before = len(granted)
        wait_until(lambda before=before: len(granted) > before + 20, 30)
        with suppress(ProcessLookupError, IndexError):
            os.kill(rng.choice(unshared.processes()), signal.SIGKILL)
    over.set()
    for worker in workers:
        worker.join(60)
    wait_until(lambda: is_answered(agent(unshared)), 30)
    tokens = [lease["token"] for lease in granted.values()]
    assert len(set(tokens)) == len(tokens)
    for job, lease in granted.items():
        while (answer := agent(unshared).heartbeat(job, lease["lease_id"])).status == 503:
            time.sleep(0.1)  # a front that was started last may not have found the engine yet
        assert ok(answer)["owner"] == lease["owner"]


def test_while_there_is_no_engine_callers_are_told_to_try_again(unshared):
    alice, engine = agent(unshared), unshared.engine()
    kill([engine], signal.SIGSTOP)
    with Callers() as callers:
        asked = [callers.send(alice.claim, fresh(), "me") for _ in range(4)]
        forwarded = callers.send(alice.get, "/v1/jobs")
        time.sleep(0.3)
        kill([engine])
        answers = [each.result(10)[0] for each in asked]
        assert forwarded.result(10)[0].status in {200, 503}  # 200 if the next engine process accepted its connection
    assert {answer.status for answer in answers} == {503}
    assert {answer.json["error"] for answer in answers} <= {"outcome_unknown", "store_unavailable"}


def test_a_killed_parent_takes_all_processes_with_it(unshared):
    pids = unshared.processes()
    unshared.process.kill()
    unshared.process.wait()
    wait_until(lambda: not any(map(runs, pids)), RESTART_SECONDS)


def runs(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_stopped_server_answers_those_who_wait_and_exits_with_zero(unshared):
    alice, job = agent(unshared), fresh()
    claimed(alice.claim(job, "me"))
    with Callers() as callers:
        waiter = callers.send(alice.claim, job, "you", wait_seconds=30)
        eventually(lambda: held(alice.claim(job, "x"))["waiting"], lambda seen: seen == 1, within=10)
        unshared.process.terminate()
        assert waiter.result(10)[0].status == 503
    assert unshared.process.wait(15) == 0
