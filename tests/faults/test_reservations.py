"""Reservations of two servers on one store: order across servers, and waiters of a server that is killed."""

import time

import pytest

from tests.http.job_client import Callers, fresh, ok, root
from tests.proof_size import sized
from tests.reservation_agents import check_grants, run_agents, some_patterns
from tests.store_inspection import events_of
from tests.support import wait_until

pytestmark = pytest.mark.waits(8)

LIFETIME = 6.0
"""Seconds for which a wait lasts after its server renewed it last."""
AGENTS = sized(6, 32)
ROUNDS = sized(40, 2_000)
BUSY = 6.0
"""Seconds by which a busy machine may be late."""


@pytest.fixture
def servers(new_store_url, new_server):
    url = new_store_url()
    return [new_server(url).start() for _ in range(2)]


@pytest.fixture
def space():
    return fresh("acme/shop")


def reserve(caller, space, owner, *paths, **fields):
    asked = {"space": space, "owner": owner, "paths": paths or ("src/",), "ttl_seconds": 3600, **fields}
    return ok(caller.post("/v1/reservations", asked))


def release(caller, reserved):
    path = f"/v1/reservations/{reserved['reservation_id']}/release"
    return ok(caller.post(path, {"lease_id": reserved["lease_id"]}))


def waiting(caller, space):
    listed = ok(caller.get(f"/v1/reservations?space={space.replace('/', '%2F')}"))["reservations"]
    return [each["owner"] for each in listed if each["status"] == "waiting"]


def test_files_are_handed_on_across_servers_in_the_order_of_arrival(servers, space):
    first, second = map(root, servers)
    held = reserve(first, space, "holder")
    with Callers() as callers:
        waiters = []
        for number in range(4):
            caller = (second, first)[number % 2]
            paths = ("src/", "src/a") if number == 2 else ("src/*",)
            waiters.append(callers.send(reserve, caller, space, f"w{number}", *paths, wait_seconds=60))
            wait_until(lambda count=number + 1: len(waiting(first, space)) == count)
        tokens = [held["token"]]
        for number, waiter in enumerate(waiters):
            assert not any(later.done() for later in waiters[number:])
            release((first, second)[number % 2], held)
            held, _ = waiter.result(30)
            assert (held["status"], held["owner"]) == ("reserved", f"w{number}")
            tokens.append(held["token"])
    assert tokens == sorted(set(tokens))


def test_agents_of_two_servers_hold_no_patterns_that_overlap_and_nobody_is_overtaken(servers, space, covered):
    callers = [*map(root, servers)]

    def one_round(number, rng):
        mode = rng.choice(["exclusive", "exclusive", "shared"])
        asked = {"mode": mode, "wait_seconds": 15}
        held = reserve(rng.choice(callers), space, f"agent-{number}", *some_patterns(rng), **asked)
        assert held["status"] == "reserved", held
        time.sleep(rng.uniform(0, 0.003))
        release(rng.choice(callers), held)

    run_agents(AGENTS, ROUNDS, one_round)
    assert check_grants(events_of(servers[0].store)) == ROUNDS
    covered("reservations", ROUNDS)


def test_the_waiter_of_a_killed_server_keeps_its_place_and_is_in_nobodys_way_after_six_seconds(servers, space):
    first, second = map(root, servers)
    held = reserve(first, space, "holder")
    with Callers() as callers:
        lost = callers.send(reserve, second, space, "lost", wait_seconds=60)
        wait_until(lambda: waiting(first, space) == ["lost"])
        follows = callers.send(reserve, first, space, "follows", "src/a", wait_seconds=60)
        wait_until(lambda: len(waiting(first, space)) == 2)
        servers[1].kill()
        killed_at = time.monotonic()
        release(first, held)
        answer = reserve(first, space, "late", "src/b")
        assert [(each["owner"], each["status"]) for each in answer["conflicts"]] == [("lost", "waiting")]
        assert reserve(first, space, "elsewhere", "docs/")["status"] == "reserved"
        served, served_at = follows.result(30)
        seconds = served_at - killed_at
        assert served["status"] == "reserved"
        assert LIFETIME / 3 < seconds < LIFETIME + BUSY
        assert lost.exception(30) is not None
        release(first, served)
        assert reserve(first, space, "late", "src/b")["status"] == "reserved"
