"""Elections need no account, so they are limited by address and by number; and they can be closed."""

import itertools

import pytest

from tests.compat.octostore.expect import malformed, refused, success
from tests.compat.octostore.server import Server

FIVE = 5  # a minute, on the strict server
addresses = (f"203.0.113.{number}" for number in itertools.count(1))


@pytest.fixture
def visitor(strict_server):
    """Somebody from an address nobody came from before."""
    return new_visitor(strict_server)


def new_visitor(server):
    return server.anyone.saying(CF_Connecting_IP=next(addresses))


def exhaust(visitor, room):
    """Use up the address's budget by half creating, half campaigning."""
    for number in range(FIVE):
        answer = visitor.post("/elections") if number % 2 else visitor.campaign(room, "a b")
        assert answer.status in {201, 400}, str(answer)


def test_creating_is_limited_to_the_rate(visitor):
    for _ in range(FIVE):
        success(visitor.post("/elections"), 201)
    body = refused(visitor.post("/elections"), 429, "rate_limited")
    assert 1_000 <= body["retry_after_ms"] <= 60_000
    assert str(body["retry_after_ms"] // 1000) in body["details"]


def test_campaigning_and_creating_share_one_budget(visitor, room):
    exhaust(visitor, room)
    refused(visitor.post("/elections"), 429, "rate_limited")
    refused(visitor.campaign(room), 429, "rate_limited")


def test_the_rate_is_told_before_a_bad_id(visitor, room):
    exhaust(visitor, room)
    refused(visitor.campaign("short"), 429, "rate_limited")


def test_requests_that_fail_validation_use_the_budget(visitor):
    for _ in range(FIVE):
        refused(visitor.campaign("short"), 400, "invalid_input")
    refused(visitor.campaign("short"), 429, "rate_limited")


def test_requests_without_a_readable_body_use_no_budget(visitor, room):
    for _ in range(FIVE):
        malformed(visitor.post(f"/elections/{room}/campaign", {}), 422)
        malformed(visitor.post(f"/elections/{room}/campaign"), 415)
    exhaust(visitor, room)


def test_looking_renewing_and_resigning_are_never_limited(strict_server, visitor, room):
    leadership = success(new_visitor(strict_server).campaign(room))
    exhaust(visitor, room)
    for _ in range(FIVE + 1):
        success(visitor.get(f"/elections/{room}"))
        success(visitor.renew_leadership(room, leadership["leader_token"]))
    success(visitor.resign(room, leadership["leader_token"]))


def test_each_address_has_its_own_budget(strict_server, visitor, room):
    exhaust(visitor, room)
    refused(visitor.post("/elections"), 429, "rate_limited")
    success(new_visitor(strict_server).post("/elections"), 201)


def test_an_address_that_is_none_counts_as_the_peers_own(strict_server, room):
    exhaust(strict_server.anyone, room)
    refused(strict_server.anyone.saying(CF_Connecting_IP="nonsense").post("/elections"), 429, "rate_limited")


def test_a_room_more_than_there_may_be_is_refused_until_one_is_vacant(strict_server, room):
    def campaign(which, **fields):
        return new_visitor(strict_server).campaign(f"{room}-{which}", **fields)

    leaderships = [success(campaign(which)) for which in (1, 2)]
    body = refused(campaign(3), 409, "capacity_exceeded")
    assert body["retry_after_ms"] == 30_000
    assert success(campaign(1))["status"] == "follower"
    refused(campaign(3, ttl_seconds=4), 400, "invalid_ttl")
    assert success(strict_server.anyone.get(f"/elections/{room}-3"))["status"] == "vacant"
    success(new_visitor(strict_server).post("/elections"), 201)
    success(strict_server.anyone.resign(f"{room}-1", leaderships[0]["leader_token"]))
    last = success(campaign(3))
    assert last["status"] == "leader"
    for which, leadership in ((2, leaderships[1]), (3, last)):
        success(strict_server.anyone.resign(f"{room}-{which}", leadership["leader_token"]))


@pytest.fixture(scope="module")
def closed(new_sqlite_url):
    """A server without elections; no store is asked, so one will do."""
    server = Server(new_sqlite_url(), PUBLIC_ELECTIONS="false").start()
    yield server.anyone
    server.close()


TOKEN = "VQ6EAOKbQdSnFkRmVUQAAFUOhADim0HUpxZEZlVEAAE"
CLOSED_CALLS = {
    "create": lambda caller: caller.post("/elections"),
    "status": lambda caller: caller.get("/elections/some-room"),
    "status of a bad id": lambda caller: caller.get("/elections/short"),
    "campaign": lambda caller: caller.campaign("some-room"),
    "campaign in a bad room": lambda caller: caller.campaign("short"),
    "renew": lambda caller: caller.renew_leadership("some-room", TOKEN),
    "resign": lambda caller: caller.resign("some-room", TOKEN),
}


@pytest.mark.parametrize("call", CLOSED_CALLS.values(), ids=CLOSED_CALLS)
def test_where_elections_are_closed_every_call_is_forbidden(closed, call):
    refused(call(closed), 403, "forbidden")


@pytest.mark.parametrize("verb", ["campaign", "renew", "resign"])
def test_where_elections_are_closed_a_bad_body_is_still_told_first(closed, verb):
    malformed(closed.post(f"/elections/some-room/{verb}", {}), 422)
    malformed(closed.post(f"/elections/some-room/{verb}"), 415)


def test_where_elections_are_closed_the_rest_is_open(closed):
    success(closed.get("/status"))
