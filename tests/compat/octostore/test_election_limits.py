"""Limits of elections by address and in number, and servers with elections disabled."""

import itertools

import pytest

from tests.compat.octostore.expect import malformed, refused, success
from tests.compat.octostore.server import Server

FIVE = 5  # a minute, on the strict server
addresses = (f"203.0.113.{number}" for number in itertools.count(1))


@pytest.fixture
def client(strict_server):
    """A client with a new address."""
    return new_client(strict_server)


def new_client(server):
    return server.anyone.with_headers(CF_Connecting_IP=next(addresses))


def use_up_the_budget(client, election):
    """Use the budget of the address: half by creating, half by campaigning."""
    for number in range(FIVE):
        answer = client.post("/elections") if number % 2 else client.campaign(election, "a b")
        assert answer.status in {201, 400}, str(answer)


def test_creating_is_limited_to_the_rate(client):
    for _ in range(FIVE):
        success(client.post("/elections"), 201)
    body = refused(client.post("/elections"), 429, "rate_limited")
    assert 1_000 <= body["retry_after_ms"] <= 60_000
    assert str(body["retry_after_ms"] // 1000) in body["details"]


def test_campaigning_and_creating_share_one_budget(client, election):
    use_up_the_budget(client, election)
    refused(client.post("/elections"), 429, "rate_limited")
    refused(client.campaign(election), 429, "rate_limited")


def test_the_rate_is_reported_before_a_bad_id(client, election):
    use_up_the_budget(client, election)
    refused(client.campaign("short"), 429, "rate_limited")


def test_requests_that_fail_validation_use_the_budget(client):
    for _ in range(FIVE):
        refused(client.campaign("short"), 400, "invalid_input")
    refused(client.campaign("short"), 429, "rate_limited")


def test_requests_without_a_readable_body_use_no_budget(client, election):
    for _ in range(FIVE):
        malformed(client.post(f"/elections/{election}/campaign", {}), 422)
        malformed(client.post(f"/elections/{election}/campaign"), 415)
    use_up_the_budget(client, election)


def test_reading_renewing_and_resigning_are_not_limited(strict_server, client, election):
    leadership = success(new_client(strict_server).campaign(election))
    use_up_the_budget(client, election)
    for _ in range(FIVE + 1):
        success(client.get(f"/elections/{election}"))
        success(client.renew_leadership(election, leadership["leader_token"]))
    success(client.resign(election, leadership["leader_token"]))


def test_each_address_has_its_own_budget(strict_server, client, election):
    use_up_the_budget(client, election)
    refused(client.post("/elections"), 429, "rate_limited")
    success(new_client(strict_server).post("/elections"), 201)


def test_a_malformed_address_counts_as_the_address_of_the_peer(strict_server, election):
    use_up_the_budget(strict_server.anyone, election)
    refused(strict_server.anyone.with_headers(CF_Connecting_IP="nonsense").post("/elections"), 429, "rate_limited")


def test_the_number_of_elections_with_a_leader_is_limited(strict_server, election):
    def campaign(which, **fields):
        return new_client(strict_server).campaign(f"{election}-{which}", **fields)

    leaderships = [success(campaign(which)) for which in (1, 2)]
    body = refused(campaign(3), 409, "capacity_exceeded")
    assert body["retry_after_ms"] == 30_000
    assert success(campaign(1))["status"] == "follower"
    refused(campaign(3, ttl_seconds=4), 400, "invalid_ttl")
    assert success(strict_server.anyone.get(f"/elections/{election}-3"))["status"] == "vacant"
    success(new_client(strict_server).post("/elections"), 201)
    success(strict_server.anyone.resign(f"{election}-1", leaderships[0]["leader_token"]))
    last = success(campaign(3))
    assert last["status"] == "leader"
    for which, leadership in ((2, leaderships[1]), (3, last)):
        success(strict_server.anyone.resign(f"{election}-{which}", leadership["leader_token"]))


@pytest.fixture(scope="module")
def closed(new_sqlite_url):
    """A server with elections disabled; one store is enough, because none is used."""
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
def test_disabled_elections_are_forbidden(closed, call):
    refused(call(closed), 403, "forbidden")


@pytest.mark.parametrize("verb", ["campaign", "renew", "resign"])
def test_disabled_elections_report_a_malformed_body_first(closed, verb):
    malformed(closed.post(f"/elections/some-room/{verb}", {}), 422)
    malformed(closed.post(f"/elections/some-room/{verb}"), 415)


def test_disabled_elections_do_not_affect_locks(closed):
    success(closed.get("/status"))
