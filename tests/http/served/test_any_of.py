"""Claims of any of several jobs over HTTP."""

import pytest

from tests.compat.octostore.expect import eventually
from tests.http.job_client import Callers, claimed, fresh, held, ok, pointers, problem, root


@pytest.fixture
def names():
    return [fresh("staging") for _ in range(3)]


def claim_any(caller, names, owner="worker", **fields):
    return caller.post("/v1/jobs/claim", {"any_of": names, "owner": owner, **fields})


def test_the_first_free_one_is_claimed_in_the_given_order(alice, names):
    granted = [claimed(claim_any(alice, names, f"worker-{number}")) for number in range(3)]
    assert [body["job_id"] for body in granted] == names
    body = held(claim_any(alice, names))
    assert body["owner"] == "worker-0"


def test_a_random_order_takes_different_ones(alice):
    names = [fresh() for _ in range(20)]
    chosen = []
    for _ in range(5):
        body = claimed(claim_any(alice, names, order="random"))
        chosen.append(body["job_id"])
        ok(alice.release_job(body["job_id"], body["lease_id"]))
    assert len(set(chosen)) > 1


def test_a_waiter_gets_whichever_is_free_first(alice, bob, names):
    leases = [claimed(claim_any(alice, names)) for _ in names]
    with Callers() as callers:
        waiter = callers.send(claim_any, bob, names, "waiter", wait_seconds=20)
        eventually(lambda: held(alice.claim(names[2]))["waiting"], lambda seen: seen == 1, within=10)
        ok(alice.release_job(names[1], leases[1]["lease_id"]))
        assert claimed(waiter.result(10)[0])["job_id"] == names[1]


def test_if_all_are_done_the_answer_is_done(alice, names):
    for name in names:
        lease = claimed(alice.claim(name))
        ok(alice.release_job(name, lease["lease_id"], outcome="done", result=name))
    body = ok(claim_any(alice, names))
    assert (body["status"], body["job_id"], body["result"]) == ("done", names[0], names[0])


def test_a_repeated_claim_under_a_key_gets_the_same_job(alice, names):
    once = alice.under_key(fresh("key"))
    first, again = (claim_any(once, names) for _ in range(2))
    assert again.json["lease_id"] == first.json["lease_id"]
    assert again.header("Idempotency-Replayed") == "true"


@pytest.mark.parametrize("wrong", [[], ["a", "\u0000"], ["x" * 300], ["n"] + [f"n-{number}" for number in range(100)]])
def test_a_wrong_list_is_refused(alice, wrong):
    assert pointers(problem(claim_any(alice, wrong), 400, "invalid_request")) == {"/any_of"}


def test_a_key_with_a_prefix_claims_only_names_with_it(server):
    prefix = fresh("team")
    made = root(server).post("/v1/keys", {"name": fresh(), "scopes": ["jobs"], "prefix": f"{prefix}/"}).json
    bound = root(server).with_headers(Authorization=f"Bearer {made['apiKey']}")
    claimed(claim_any(bound, [f"{prefix}/a"]))
    assert claim_any(bound, [f"{prefix}/b", "other"]).status == 403
    assert claimed(claim_any(bound, [f"{prefix}/b"]))["job_id"] == f"{prefix}/b"
