"""Claims beyond Orchestrion: several types, any type, many at once; and claims that are repeated."""

import pytest

from tests.compat.orchestrion.expect import claimed, instant, task
from tests.compat.orchestrion.states import pending
from tests.http.expiring_session import TTL_SECONDS
from tests.http.job_client import Callers, fresh
from tests.http.replies import claimed_many, done, events, nothing_changes, refused
from tests.http.session_client import begin

pytestmark = pytest.mark.waits(9)

pytest_plugins = ["tests.http.fresh_accounts"]


def ids(tasks):
    return [task["id"] for task in tasks]


# -- which and how many ------------------------------------------------------------------------------------------


def test_a_claim_of_several_types_takes_the_first_of_all_of_them(account):
    made = [pending(account, type=name, priority=priority) for name, priority in [("a", 1), ("b", 3), ("c", 2)]]
    pending(account, type="d", priority=9)
    order = [claimed(account.post("/v1/tasks/claim", {"types": ["a", "b", "c"]}))["id"] for _ in made]
    assert order == [made[1]["id"], made[2]["id"], made[0]["id"]]


def test_type_and_types_are_taken_together(account):
    made = [pending(account, type=name) for name in ("a", "b", "c")]
    got = claimed_many(account.post("/v1/tasks/claim", {"type": "a", "types": ["c", "a"], "limit": 10}))
    assert ids(got) == [made[0]["id"], made[2]["id"]]


def test_a_claim_without_a_type_takes_from_all_queues_in_order(account):
    made = [pending(account, type=name, priority=priority) for name, priority in [("a", 1), ("b", 3), ("c", 2)]]
    got = claimed_many(account.post("/v1/tasks/claim", {"limit": 2}))
    assert ids(got) == [made[1]["id"], made[2]["id"]]


def test_a_hundred_types_may_be_named(account):
    made = pending(account, type="type-99")
    types = [f"type-{number}" for number in range(100)]
    assert claimed(account.post("/v1/tasks/claim", {"types": types}))["id"] == made["id"]


def test_a_claim_takes_up_to_its_limit_in_order_each_under_a_lease_of_its_own(account):
    items = [{"op": "create", "type": "work", "payload": {"n": n}} for n in range(103)]
    made = [result["task"] for result in done(account.post("/v1/tasks/batch", {"items": items}))["results"]]
    first = claimed_many(account.claim(limit=100, worker_id="many"))
    assert ids(first) == ids(made)[:100]
    assert len({got["leaseId"] for got in first}) == len({got["fencingToken"] for got in first}) == 100
    assert {(got["status"], got["claimedBy"], got["attemptCount"]) for got in first} == {("claimed", "many", 1)}
    for got in (first[0], first[-1]):
        task(account.do("complete", got["id"], lease_id=got["leaseId"], fencing_token=got["fencingToken"]))
    assert ids(claimed_many(account.claim(limit=100))) == ids(made)[100:]


def test_a_limit_of_one_still_answers_a_list(account):
    made = pending(account)
    assert ids(claimed_many(account.claim(limit=1))) == [made["id"]]


def test_a_limit_in_an_empty_queue_answers_an_empty_list(account):
    body = done(account.claim(limit=5))
    assert (body["tasks"], body["count"], body["task"], body["message"]) == ([], 0, None, "no_tasks")
    assert body["agent_contract"]["task_claimable"] is False


def test_claims_of_many_share_the_queue_without_doubles(account):
    items = [{"op": "create", "type": "work", "payload": {}}] * 60
    made = [result["task"]["id"] for result in done(account.post("/v1/tasks/batch", {"items": items}))["results"]]
    with Callers() as callers:
        claims = [callers.send(account.claim, limit=9) for _ in range(8)]
        got = [got["id"] for claim in claims for got in claimed_many(claim.result(10)[0])]
    assert sorted(got) == sorted(made)


# -- claims for a session ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_id", [True, False])
def test_a_claim_for_a_session_that_is_not_there_takes_nothing(account, stranger, by_id):
    made = pending(account)
    foreign = begin(stranger)["session_id"]
    for session_id in (foreign, "00000000-0000-4000-8000-000000000000"):
        with nothing_changes(account):
            call = (
                account.do("claim", made["id"], session_id=session_id)
                if by_id
                else account.claim(session_id=session_id)
            )
            refused(call, 404, "session_not_found")


# -- claims that are repeated ------------------------------------------------------------------------------------


def by_type(account, made, **fields):
    return account.claim(**fields)


def by_id(account, made, **fields):
    return account.do("claim", made["id"], worker_id="me", **fields)


@pytest.mark.parametrize("claim", [by_type, by_id])
def test_a_repeated_claim_is_the_same_lease_with_its_present_times(account, claim):
    made = [pending(account), pending(account)][0]
    caller = account.with_headers(Idempotency_Key=fresh())
    first = claimed(claim(caller, made))
    renewed = task(account.do("heartbeat", made["id"], lease_id=first["leaseId"], note="on it"))
    with nothing_changes(account):
        answer = claim(caller, made)
        again = claimed(answer)
    assert answer.header("Idempotency-Replayed") == "true"
    assert (again["leaseId"], again["fencingToken"]) == (first["leaseId"], first["fencingToken"])
    assert (again["leaseExpiresAt"], again["note"]) == (renewed["leaseExpiresAt"], "on it")
    assert again["agent_contract"]["lease_expires_in_seconds"] <= again["leaseDurationSeconds"]
    assert again["leaseId"] == again["task"]["leaseId"]


def test_a_repeated_claim_of_many_is_the_same_leases(account):
    made = [pending(account) for _ in range(3)]
    caller = account.with_headers(Idempotency_Key=fresh())
    first = claimed_many(caller.claim(limit=2))
    with nothing_changes(account):
        again = claimed_many(caller.claim(limit=2))
    assert ids(again) == ids(first) == ids(made)[:2]
    assert [got["leaseId"] for got in again] == [got["leaseId"] for got in first]


def test_a_claim_that_found_nothing_uses_no_key_up(account):
    caller = account.with_headers(Idempotency_Key=fresh())
    assert done(caller.claim())["message"] == "no_tasks"
    made = pending(account)
    assert claimed(caller.claim())["id"] == made["id"]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (lambda account, mine: account.do("release", mine["id"]), "invalid_transition"),
        (lambda account, mine: account.complete(mine["id"]), "invalid_transition"),
        (lambda account, mine: account.do("cancel", mine["id"], mode="force"), "lease_superseded"),
        (
            lambda account, mine: [account.do("release", mine["id"]), account.do("claim", mine["id"])],
            "lease_superseded",
        ),
    ],
    ids=["released", "completed", "cancelled", "taken over"],
)
def test_a_claim_repeated_after_its_lease_is_over_grants_nothing(account, end, code):
    made = pending(account)
    caller = account.with_headers(Idempotency_Key=fresh())
    mine = claimed(by_id(caller, made))
    end(account, mine)
    with nothing_changes(account):
        refused(by_id(caller, made), 409, code)
    assert mine["leaseId"] not in by_id(caller, made).raw.decode()


def test_a_claim_repeated_after_its_lease_ran_out_grants_nothing(expired_session):
    keyed = expired_session.tasks["claimed under a key"]
    with nothing_changes(expired_session.account):
        body = refused(expired_session.claim(keyed["id"], key="silent"), 409, "lease_expired")
    assert instant(body["endedAt"]) - instant(keyed["updatedAt"]) <= TTL_SECONDS + 1


def test_two_claims_under_one_key_at_once_are_one_claim(account):
    made = [pending(account) for _ in range(4)]
    key = fresh()
    with Callers() as callers:
        claims = [callers.send(account.with_headers(Idempotency_Key=key).claim) for _ in range(8)]
        got = {claimed(claim.result(10)[0])["leaseId"] for claim in claims}
    assert len(got) == 1
    assert len(events(account, "kind=task.claimed")) == 1
    assert len(made) == 4


def test_another_claim_under_the_same_key_is_a_conflict(account):
    pending(account)
    caller = account.with_headers(Idempotency_Key=fresh())
    claimed(caller.claim())
    with nothing_changes(account):
        refused(caller.claim(worker_id="another"), 409, "idempotency_conflict")


# -- other verbs that are repeated -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("complete", {"result": {"n": 1}}),
        ("fail", {"reason": "it broke"}),
        ("release", {}),
        ("snooze", {"seconds": 60}),
        ("heartbeat", {"note": "here"}),
        ("cancel", {"mode": "force"}),
    ],
)
def test_a_repeated_verb_has_one_effect_and_one_answer(account, verb, fields):
    mine = claimed(account.do("claim", pending(account)["id"]))
    caller = account.with_headers(Idempotency_Key=fresh())
    first = caller.post(f"/v1/tasks/{mine['id']}/{verb}", fields)
    done(first)
    with nothing_changes(account):
        again = caller.post(f"/v1/tasks/{mine['id']}/{verb}", fields)
    assert (again.raw, again.header("Idempotency-Replayed")) == (first.raw, "true")


def test_a_repeated_heartbeat_whose_lease_is_over_is_refused(account):
    mine = claimed(account.do("claim", pending(account)["id"]))
    caller = account.with_headers(Idempotency_Key=fresh())
    beat = {"lease_id": mine["leaseId"]}
    done(caller.post(f"/v1/tasks/{mine['id']}/heartbeat", beat))
    done(account.do("release", mine["id"], **beat))
    claimed(account.do("claim", mine["id"]))
    refused(caller.post(f"/v1/tasks/{mine['id']}/heartbeat", beat), 409, "lease_superseded")
