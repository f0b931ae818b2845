"""The lease id: proof of a claim, optional because the original's clients know none, enforced when it is sent."""

import uuid

import pytest

from tests.compat.orchestrion.expect import bare, claimed, envelope, page, task
from tests.compat.orchestrion.states import held, pending

WRITES = ("heartbeat", "complete", "fail")
SPELLINGS = ("leaseId", "lease_id")


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_lease_id_and_token_of_the_claim_are_accepted(account, verb, spelling):
    mine = held(account)
    done = task(account.do(verb, mine["id"], **{spelling: mine["leaseId"]}))
    assert not done.get("warnings")


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_wrong_proof_changes_nothing(account, verb, spelling):
    mine = task(account.read_task(held(account)["id"]))
    answer = account.do(verb, mine["id"], **{spelling: str(uuid.uuid4())})
    assert envelope(answer, 409)["error"] == "lease_superseded"
    assert bare(task(account.read_task(mine["id"]))) == bare(mine)


@pytest.mark.parametrize("verb", WRITES)
def test_the_lease_id_of_an_earlier_attempt_is_refused(account, verb):
    first = held(account)
    task(account.fail(first["id"]))
    second = claimed(account.claim())
    assert second["leaseId"] != first["leaseId"]
    answer = account.do(verb, first["id"], lease_id=first["leaseId"])
    assert envelope(answer, 409)["error"] == "lease_superseded"
    assert task(account.read_task(first["id"]))["status"] == "claimed"
    task(account.do(verb, first["id"], lease_id=second["leaseId"]))


def test_the_lease_id_is_returned_only_by_the_claim(account):
    mine = held(account)
    proof = mine["leaseId"].encode()
    assert proof not in account.read_task(mine["id"]).raw
    assert proof not in account.list().raw
    assert proof not in account.do("claim", mine["id"]).raw
    assert len(page(account.list())["tasks"]) == 1


def test_every_claim_has_a_new_lease_id(account):
    for _ in range(3):
        pending(account)
    assert len({claimed(account.claim())["leaseId"] for _ in range(3)}) == 3
