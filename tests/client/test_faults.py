"""Lost answers, and dead, paused and unreachable servers: nothing is applied twice, no work without a lease."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import holdfast
from holdfast.client.errors import LeaseLost, OutcomeUnknown, Unreachable
from holdfast.client.leases import clock
from tests.client.fleet import SORTS, Fleet, Names
from tests.client.proxy import CUT, HANG, LOSE, PASS, SLOW, between, every
from tests.client.ways import KEY, awaited, url_of
from tests.compat.octostore.server import free_port
from tests.proof_size import sized
from tests.store_inspection import assert_store_is_consistent
from tests.support import wait_until

pytestmark = pytest.mark.waits(50)

RUNS = sized(1, 200)


def client_of(endpoint, **settings):
    return holdfast.Client(url_of(endpoint), KEY, **settings)


@pytest.mark.parametrize("way", ["http", "async"])
def test_a_lost_answer_never_causes_a_second_task_or_lease(sqlite_server, name, way):
    with between(sqlite_server, every(2, LOSE)) as proxy:
        with client_of(proxy) if way == "http" else awaited(url_of(proxy)) as client:
            made = [client.create_task(name, {"n": n}) for n in range(6)]
            first = client.claim_job(name, "me")
            assert first["status"] == "claimed"
            again = client.heartbeat_job(name, first["lease_id"])
            assert again["status"] == "claimed"
            for _ in range(6):
                with client.task(name) as task:
                    task.result = {"n": task.payload["n"]}
        assert LOSE in proxy.fates
    with client_of(sqlite_server) as honest:
        tasks = honest.list_tasks(type=name)["tasks"]
        assert {task["id"] for task in tasks} == {task["id"] for task in made}
        assert all((task["status"], task["attemptCount"]) == ("completed", 1) for task in tasks)
        kinds = [event["kind"] for event in honest.list_events(subject=f"lease:{name}")["events"]]
        assert kinds.count("lease.claimed") == 1


def test_a_call_that_is_not_safe_to_repeat_is_sent_once(sqlite_server, name):
    with between(sqlite_server, lambda: LOSE) as proxy, client_of(proxy, deadline=3) as client:
        with pytest.raises(OutcomeUnknown) as caught:
            client.create_key(name, ["jobs"])
        assert caught.value.applied == "unknown"
        assert proxy.fates == [LOSE]
        with pytest.raises(Unreachable):  # a read changes nothing, so its outcome is not in doubt
            client.get_job_owner(name)
        assert len(proxy.fates) > 2
    with client_of(sqlite_server) as honest:
        assert [key["name"] for key in honest.list_keys()["keys"]].count(name) == 1


def test_an_unreachable_server_is_reported_within_the_deadline():
    port = free_port()
    began = time.monotonic()
    with pytest.raises(Unreachable), holdfast.Client(f"http://127.0.0.1:{port}", KEY, deadline=1) as client:
        client.create_task("x", {})
    with pytest.raises(Unreachable), holdfast.Client("http://no-such-host.invalid", KEY, deadline=1) as client:
        client.create_task("x", {})
    assert time.monotonic() - began < 30


def test_a_call_is_retried_until_the_server_has_restarted(tmp_path, new_server, name):
    server = new_server(f"sqlite:///{tmp_path}/x.db")
    answered = []
    with client_of(server) as client:
        asking = threading.Thread(target=lambda: answered.append(client.create_task(name, {})))
        asking.start()
        time.sleep(0.5)
        server.start()
        asking.join(30)
        assert answered[0]["status"] == "pending"
        with client.job(name, "me", ttl=10) as job:
            server.kill()
            server.start()
            token = job.token
            left = job.remaining
            wait_until(lambda: job.remaining > left, 20)  # it grows only by a renewal, on a new connection
            job.check()
        assert client.claim_job(name, "next")["token"] > token
    assert_store_is_consistent(server.store)


@pytest.mark.parametrize("way", ["http", "async"])
def test_a_lease_is_lost_in_time_if_the_server_is_paused_or_the_network_silent(tmp_path, new_server, name, way):
    server = new_server(f"sqlite:///{tmp_path}/x.db").start()
    fate = [PASS]
    with (
        between(server, lambda: fate[0]) as proxy,
        client_of(proxy) if way == "http" else awaited(url_of(proxy)) as client,
    ):
        # The server is paused for longer than the TTL.
        with pytest.raises(LeaseLost), client.job(name, "me", ttl=1) as job:
            job.check()
            server.process.send_signal(signal.SIGSTOP)
            threading.Timer(2.5, server.process.send_signal, [signal.SIGCONT]).start()
            paused_at = clock.now()
            held_until = last_passed_check(job)
        assert held_until - paused_at < 2.3  # the server still slept
        # The server is well, but its answers never come: others can have the job, and do.
        with client_of(server) as other, pytest.raises(LeaseLost), client.job(f"{name}-2", "me", ttl=1) as job:
            fate[0] = HANG
            taken = []
            taking = threading.Thread(target=lambda: taken.append(take(other, f"{name}-2")))
            taking.start()
            held_until = last_passed_check(job)
            # Renewals still reach the server, so it stays ours there; the way there is cut as well.
            fate[0] = CUT
            taking.join(20)
            fate[0] = PASS
            assert held_until < taken[0]
            job.check()


@pytest.mark.parametrize("way", ["http", "async"])
def test_a_late_answer_extends_the_lease_no_further_than_a_prompt_one(sqlite_server, name, way):
    """Claimed, renewed once with a late answer, then disconnected."""
    fates = iter([PASS, SLOW])
    with (
        between(sqlite_server, lambda: next(fates, CUT)) as proxy,
        client_of(proxy) if way == "http" else awaited(url_of(proxy)) as client,
        client_of(sqlite_server) as other,
        pytest.raises(LeaseLost),
        client.job(name, "me", ttl=2) as job,
    ):
        taken = []
        taking = threading.Thread(target=lambda: taken.append(take(other, name)))
        taking.start()
        wait_until(lambda: CUT in proxy.fates)
        job.check()
        held_until = last_passed_check(job)
        taking.join(20)
        assert held_until < taken[0]
        job.check()


def last_passed_check(job):
    """When the last check was made that the job passed: a busy machine may show its failure later, but not earlier."""
    passed = began = clock.now()
    with pytest.raises(LeaseLost):
        while (now := clock.now()) - began < 10:
            job.check()
            passed = now
            time.sleep(0.001)
    return passed


def take(client, name):
    with client.job(name, "other", ttl=1, wait=15):
        return clock.now()


HOLDER = """
import sys, time, holdfast
from holdfast.client.leases.clock import now
with holdfast.Client().job(sys.argv[1], "holder", ttl=1) as job:
    while True:
        before = now()
        job.check()
        print(before, flush=True)
        time.sleep(0.01)
"""


def test_a_suspended_holder_acts_no_more_after_its_lease_expired(sqlite_server, name):
    environment = os.environ | {"HOLDFAST_URL": url_of(sqlite_server), "HOLDFAST_API_KEY": KEY}
    with client_of(sqlite_server) as client:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, name],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        with client.job(name, "other", ttl=5, wait=10):
            entered = clock.now()
            holder.send_signal(signal.SIGCONT)
            out, err = holder.communicate(timeout=20)
    assert "LeaseLost" in err
    assert max(map(float, out.split()), default=0.0) < entered


# -- random faults -------------------------------------------------------------------------------------------------


@pytest.fixture
def names(monkeypatch):
    resolver = Names()
    monkeypatch.setattr(socket, "getaddrinfo", resolver.look_up)
    return resolver


@pytest.fixture
def new_store(tmp_path, new_postgres_database):
    """Even seeds on SQLite, odd ones on PostgreSQL."""
    return lambda seed: new_postgres_database() if seed % 2 else f"sqlite:///{tmp_path}/x.db"


@pytest.mark.parametrize("seed", range(RUNS))
def test_under_random_faults_no_two_agents_own_the_job_at_once(new_store, new_server, name, names, seed):
    """A kind of fault that never happened fails the run."""
    server = new_server(new_store(seed)).start()
    fleet = Fleet(server, name, seed, names)
    with fleet.at_work():
        fleet.trouble(sized(5, 7))
        wait_until(lambda: set(fleet.sorts()) >= SORTS and len(fleet.periods) >= 2 and fleet.completed, 60)
    assert fleet.happened["lost"], fleet.sorts()
    assert_one_owner_at_a_time(fleet)
    with client_of(server) as honest:
        assert_no_effect_came_twice(fleet, honest)
    assert_store_is_consistent(server.store)


def assert_one_owner_at_a_time(fleet):
    """When an agent was granted the job, no later check of the previous owner succeeded."""
    periods = sorted(fleet.periods, key=lambda period: period.token)
    assert len({period.token for period in periods}) == len(periods), "one token was given twice"
    for earlier, later in itertools.pairwise(periods):
        assert earlier.proved < later.granted, (
            f"token {earlier.token} could still prove itself after {later.token} was granted ({fleet.sorts()})"
        )
    assert all(period.end != "open" for period in periods)


def assert_no_effect_came_twice(fleet, client):
    """Every acknowledged change is stored, and each request was applied at most once, however often it was sent."""
    tasks = client.list_tasks(type=fleet.name, limit=100)["tasks"]
    made = [client.check_task_status(task["id"])["payload"]["n"] for task in tasks]
    assert len(made) == len(set(made)), "one call made two tasks"
    assert fleet.made <= set(made), "a task that was acknowledged is missing"
    assert all(len(by) == 1 for by in fleet.completed.values()), "one task was completed twice"
    for task_id, (number,) in fleet.completed.items():
        assert client.check_task_status(task_id)["result"] == {"by": number}
