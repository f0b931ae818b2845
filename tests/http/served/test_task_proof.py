"""Lease ids prove who holds a task; the server's own account requires them, and another account may."""

import pytest

from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import claimed, task
from tests.compat.orchestrion.states import held
from tests.http.job_client import agent, problem, root
from tests.http.replies import done, nothing_changes, refused, settle

pytest_plugins = ["tests.http.fresh_accounts"]

HOLDER_VERBS = {"heartbeat": {}, "complete": {}, "fail": {}, "release": {}, "snooze": {"seconds": 1}}
NOT_YOURS = {"leaseId", "lease_id", "fencingToken", "fencing_token", "token"}


def superseded(account):
    """A task that a second worker claimed after the first: (answer to the first claim, answer to the second)."""
    first = held(account)
    done(account.do("release", first["id"]))
    return first, claimed(account.do("claim", first["id"], worker_id="the next one"))


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_a_late_worker_learns_who_has_its_task_since_when_and_until_when(account, verb):
    first, second = superseded(account)
    with nothing_changes(account):
        answer = account.do(verb, first["id"], lease_id=first["leaseId"], **HOLDER_VERBS[verb])
        body = refused(answer, 409, "lease_superseded")
    assert (body["heldBy"], body["heldSince"]) == ("the next one", second["updatedAt"])
    assert body["leaseExpiresAt"] == second["leaseExpiresAt"]
    assert not body.keys() & NOT_YOURS
    assert body["agent_contract"]["next_actions"][0]["action"] == "stop_work"
    assert body["agent_contract"]["retryable"] is False


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_the_holder_shows_its_lease_id_and_its_token(account, verb):
    mine = held(account)
    proof = {"lease_id": mine["leaseId"], "fencing_token": mine["fencingToken"]}
    done(account.do(verb, mine["id"], **proof, **HOLDER_VERBS[verb]))


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_the_right_lease_with_another_token_is_refused(account, verb):
    mine = held(account)
    with nothing_changes(account):
        wrong = {"lease_id": mine["leaseId"], "fencing_token": mine["fencingToken"] + 1, **HOLDER_VERBS[verb]}
        refused(account.do(verb, mine["id"], **wrong), 409, "wrong_token")


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_without_a_lease_id_any_live_lease_is_taken_for_the_callers(account, verb):
    first, _ = superseded(account)
    done(account.do(verb, first["id"], **HOLDER_VERBS[verb]))


def test_tokens_grow_with_every_claim(account):
    first, second = superseded(account)
    third = held(account)
    assert first["fencingToken"] < second["fencingToken"] < third["fencingToken"]


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("complete", {"result": {"n": 1}}),
        ("fail", {"reason": "it broke"}),
        ("fail", {"permanent": True}),
        ("release", {}),
        ("snooze", {"seconds": 60}),
    ],
)
def test_an_outcome_reported_again_under_its_lease_is_answered_and_not_applied_twice(account, verb, fields):
    mine = held(account)
    told = done(account.do(verb, mine["id"], lease_id=mine["leaseId"], **fields))
    with nothing_changes(account):
        assert done(account.do(verb, mine["id"], lease_id=mine["leaseId"], **fields)) == told


def test_another_outcome_under_a_lease_that_is_over_is_refused(account):
    mine = held(account)
    done(account.do("fail", mine["id"], lease_id=mine["leaseId"]))
    with nothing_changes(account):
        refused(account.do("complete", mine["id"], lease_id=mine["leaseId"]), 409, "invalid_transition")


def test_an_outcome_reported_again_after_the_next_claim_does_not_affect_the_next_holder(account):
    first = held(account)
    done(account.do("fail", first["id"], lease_id=first["leaseId"], retry_after_seconds=0))
    claimed(account.do("claim", first["id"]))
    with nothing_changes(account):
        refused(account.do("fail", first["id"], lease_id=first["leaseId"]), 409, "lease_superseded")


def test_a_late_worker_of_a_finished_task_learns_its_state(account):
    first, second = superseded(account)
    task(account.do("complete", second["id"], lease_id=second["leaseId"]))
    body = refused(account.do("complete", first["id"], lease_id=first["leaseId"]), 409, "lease_superseded")
    assert body["state"] == "completed"


# -- accounts that require lease ids -----------------------------------------------------------------------------


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_an_account_may_require_lease_ids(account, verb):
    mine = held(account)
    assert done(settle(account, requireLeaseId=True))["requireLeaseId"] is True
    with nothing_changes(account):
        body = refused(account.do(verb, mine["id"], **HOLDER_VERBS[verb]), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == ["/lease_id"]
    done(account.do(verb, mine["id"], lease_id=mine["leaseId"], **HOLDER_VERBS[verb]))


def test_the_requirement_holds_for_items_of_a_batch(account):
    mine = held(account)
    done(settle(account, requireLeaseId=True))
    items = [{"op": "complete", "id": mine["id"]}]
    assert done(account.post("/v1/tasks/batch", {"items": items}))["results"][0]["status"] == 400
    items[0]["lease_id"] = mine["leaseId"]
    assert done(account.post("/v1/tasks/batch", {"items": items}))["results"][0]["status"] == 200


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_the_servers_own_account_always_requires_lease_ids(server, verb):
    own = Account(server.port, root(server).headers)
    made = done(own.post("/v1/tasks", {"type": "own", "payload": {}}), 201)
    mine = claimed(own.do("claim", made["id"], worker_id="me"))
    body = refused(own.do(verb, mine["id"], worker_id="me", **HOLDER_VERBS[verb]), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == ["/lease_id"]
    done(own.do(verb, mine["id"], lease_id=mine["leaseId"], **HOLDER_VERBS[verb]))
    own.do("cancel", mine["id"], mode="force")


def test_the_servers_own_account_cannot_stop_requiring_lease_ids(server):
    own = Account(server.port, root(server).headers)
    assert done(own.get("/v1/account"))["requireLeaseId"] is True
    assert done(settle(own, requireLeaseId=True))["requireLeaseId"] is True
    body = problem(settle(own, requireLeaseId=False), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == ["/requireLeaseId"]


def test_requiring_lease_ids_affects_one_account_and_can_be_undone(account, stranger):
    done(settle(account, require_lease_id=True))
    done(stranger.do("complete", held(stranger)["id"]))
    mine = held(account)
    assert done(settle(account))["requireLeaseId"] is True
    assert done(settle(account, requireLeaseId=False))["requireLeaseId"] is False
    done(account.do("complete", mine["id"]))


def test_only_an_admin_settles_an_account(server):
    assert problem(settle(agent(server), requireLeaseId=True), 403, "forbidden")["scope"] == "admin"


@pytest.mark.parametrize("value", [1, "true", []])
def test_a_requirement_is_true_or_false(account, value):
    with nothing_changes(account):
        body = problem(settle(account, requireLeaseId=value), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == ["/requireLeaseId"]
