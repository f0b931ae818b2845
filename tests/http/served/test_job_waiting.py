"""Claims that wait: served in order of arrival and within 100 ms; a caller that disconnected is skipped."""

import time

from tests.compat.octostore.expect import eventually, instant
from tests.http.job_client import Callers, agent, claimed, fresh, held, lost, ok, wait_on_a_socket
from tests.support import promptly

PROMPT_SECONDS = 0.1
ROUNDS = 5


def waiting(caller, job):
    """The number of waiters on the server of this caller."""
    return held(caller.claim(job, "looking"))["waiting"]


def is_waiting(caller, job, count):
    eventually(lambda: waiting(caller, job), lambda seen: seen == count, within=5, every=0.005)


def test_waiters_are_served_in_order_of_arrival(alice, job):
    lease = claimed(alice.claim(job, "holder"))
    with Callers() as callers:
        line = []
        for place in range(6):
            line.append(callers.send(alice.claim, job, f"waiter-{place}", wait_seconds=15))
            is_waiting(alice, job, place + 1)
        assert [listed["waiting"] for listed in alice.jobs(f"?prefix={job}")["jobs"]] == [6]
        tokens = [lease["token"]]
        for place, waiter in enumerate(line):
            ok(alice.release_job(job, lease["lease_id"]))
            lease = claimed(waiter.result(5)[0])
            assert lease["owner"] == f"waiter-{place}"
            tokens.append(lease["token"])
            assert not [later for later in line[place + 1 :] if later.done()]
    assert tokens == sorted(set(tokens))


def test_a_waiter_has_the_job_within_100_ms_of_its_release(alice):
    promptly(lambda: [after_release(alice, alice) for _ in range(ROUNDS)], PROMPT_SECONDS)


def test_a_waiter_has_the_job_within_100_ms_of_its_expiry(alice):
    def after_expiry(name):
        lease = claimed(alice.claim(name, ttl_seconds=1))
        successor = claimed(alice.claim(name, "next", wait_seconds=5))
        assert successor["previous"]["outcome"] == "expired"
        return instant(successor["claimed_at"]) - instant(lease["expires_at"])

    def delays():
        with Callers() as callers:
            futures = [callers._pool.submit(after_expiry, fresh()) for _ in range(ROUNDS)]
            delays = [future.result() for future in futures]
        assert min(delays) >= 0, "never before its time"
        return delays

    promptly(delays, PROMPT_SECONDS)


def test_a_waiter_on_another_server_has_the_job_within_100_ms(postgres_server, second_postgres_server):
    here, there = agent(postgres_server), agent(second_postgres_server)
    promptly(lambda: [after_release(here, there) for _ in range(ROUNDS)], PROMPT_SECONDS)


def test_waiters_on_another_server_are_served_in_order_too(postgres_server, second_postgres_server, job):
    here, there = agent(postgres_server), agent(second_postgres_server)
    lease = claimed(here.claim(job, "holder"))
    with Callers() as callers:
        line = []
        for place in range(4):
            line.append(callers.send(there.claim, job, f"waiter-{place}", wait_seconds=15))
            is_waiting(there, job, place + 1)
        assert waiting(here, job) == 0, "each server counts its own line"
        for place, waiter in enumerate(line):
            ok(here.release_job(job, lease["lease_id"]))
            lease = claimed(waiter.result(5)[0])
            assert lease["owner"] == f"waiter-{place}"


def test_waiters_on_two_servers_share_one_job_and_all_are_served(postgres_server, second_postgres_server, job):
    here, there = agent(postgres_server), agent(second_postgres_server)
    lease = claimed(here.claim(job, "holder"))

    def work(caller, name):
        mine = claimed(caller.claim(job, name, wait_seconds=15))
        ok(caller.release_job(job, mine["lease_id"]))
        return mine["token"]

    with Callers() as callers:
        futures = [callers._pool.submit(work, caller, f"w{n}") for n, caller in enumerate([here, there] * 5)]
        is_waiting(here, job, 5)
        is_waiting(there, job, 5)
        ok(here.release_job(job, lease["lease_id"]))
        tokens = [future.result(15) for future in futures]
    assert len(set(tokens)) == 10


def test_a_waiter_whose_time_is_over_gets_the_owner_of_the_job(alice, job):
    claimed(alice.claim(job, "holder"))
    before = time.monotonic()
    held(alice.claim(job, "late", wait_seconds=0.4), by="holder")
    assert 0.4 <= time.monotonic() - before < 1.5
    assert waiting(alice, job) == 0


def test_a_waiter_that_leaves_is_out_of_the_line(server, alice, job):
    lease = claimed(alice.claim(job, "holder"))
    with Callers() as callers:
        gone = wait_on_a_socket(server, alice, job, "gone")
        is_waiting(alice, job, 1)
        patient = callers.send(alice.claim, job, "patient", wait_seconds=15)
        is_waiting(alice, job, 2)
        gone.close()
        is_waiting(alice, job, 1)
        ok(alice.release_job(job, lease["lease_id"]))
        assert claimed(patient.result(5)[0])["previous"]["owner"] == "holder", "the one who left never had it"


def test_no_job_stays_with_a_waiter_that_left_at_the_moment_of_the_grant(server, alice):
    for _ in range(10):
        job = fresh()
        lease = claimed(alice.claim(job, "holder"))
        gone = wait_on_a_socket(server, alice, job, "gone")
        is_waiting(alice, job, 1)
        gone.close()
        ok(alice.release_job(job, lease["lease_id"]))
        eventually(lambda job=job: alice.owner_of(job)["status"], lambda status: status == "free", within=2)


def test_a_waiting_claim_with_a_key_keeps_its_grant_for_the_retry(server, alice, job):
    lease = claimed(alice.claim(job, "holder"))
    with Callers() as callers:
        twins = [callers.send(alice.under_key(job).claim, job, "twin", wait_seconds=10) for _ in range(2)]
        is_waiting(alice, job, 2)
        ok(alice.release_job(job, lease["lease_id"]))
        leases = [claimed(twin.result(5)[0]) for twin in twins]
    assert leases[0]["lease_id"] == leases[1]["lease_id"]


def test_a_forced_release_and_the_end_of_a_session_serve_the_next_waiter(alice, root, job):
    session = alice.open_session().json["session_id"]
    with Callers() as callers:
        first = claimed(alice.claim(job, "first"))
        second = callers.send(alice.claim, job, "second", wait_seconds=10, session_id=session)
        is_waiting(alice, job, 1)
        ok(root.force_release(job, "move on"))
        lease = claimed(second.result(5)[0])
        third = callers.send(alice.claim, job, "third", wait_seconds=10)
        is_waiting(alice, job, 1)
        assert alice.delete(f"/sessions/{session}").status == 204
        assert claimed(third.result(5)[0])["previous"]["outcome"] == "session_ended"
    lost(alice.heartbeat(job, first["lease_id"]))
    lost(alice.heartbeat(job, lease["lease_id"]))


def test_a_released_lock_serves_the_waiters_of_the_job(alice, bob, job):
    lock = alice.acquire(job).json
    with Callers() as callers:
        waiter = callers.send(bob.claim, job, "bob", wait_seconds=10)
        is_waiting(bob, job, 1)
        alice.release(job, lock["lease_id"])
        claimed(waiter.result(5)[0])


def test_a_waiter_gets_the_job_after_the_lock_delay(alice, job):
    lock = alice.acquire(job, lock_delay_seconds=1).json
    alice.release(job, lock["lease_id"])
    before = time.monotonic()
    claimed(alice.claim(job, "next", wait_seconds=10))
    assert 0.8 < time.monotonic() - before < 1.5


def test_a_waiter_whose_session_ends_meanwhile_is_refused(alice, job):
    session = alice.open_session().json["session_id"]
    lease = claimed(alice.claim(job, "holder"))
    with Callers() as callers:
        doomed = callers.send(alice.claim, job, "doomed", wait_seconds=10, session_id=session)
        is_waiting(alice, job, 1)
        next_one = callers.send(alice.claim, job, "next", wait_seconds=10)
        is_waiting(alice, job, 2)
        alice.delete(f"/sessions/{session}")
        ok(alice.release_job(job, lease["lease_id"]))
        assert doomed.result(5)[0].status == 404
        assert claimed(next_one.result(5)[0])["owner"] == "next"


def after_release(releaser, waiter):
    """Seconds from the release's answer to the waiter's."""
    job = fresh()
    lease = claimed(releaser.claim(job, "holder"))
    with Callers() as callers:
        future = callers.send(waiter.claim, job, "next", wait_seconds=10)
        is_waiting(waiter, job, 1)
        ok(releaser.release_job(job, lease["lease_id"]))
        released = time.monotonic()
        answer, moment = future.result(5)
        claimed(answer)
        return max(0.0, moment - released)
