"""Sessions with `lane`: at most one task in flight; a second claim is answered `busy` at once."""

from tests.compat.orchestrion.expect import claimed
from tests.compat.orchestrion.states import pending
from tests.http.job_client import Callers
from tests.http.replies import done, nothing_changes, refused
from tests.http.session_client import begin, claim_task

pytest_plugins = ["tests.http.fresh_accounts"]


def test_a_lane_has_one_task_in_flight(account):
    life = begin(account, lane=True)
    mine = claim_task(account, life)
    second = pending(account)
    with nothing_changes(account):
        body = done(account.claim(session_id=life["session_id"]))
        assert (body["task"], body["message"], body["inFlight"]) == (None, "busy", mine["id"])
        assert body["agent_contract"]["next_actions"][0]["endpoint"].startswith(f"/v1/tasks/{mine['id']}/")
        refusal = refused(account.do("claim", second["id"], session_id=life["session_id"]), 409, "session_busy")
        assert refusal["in_flight"] == mine["id"]
    assert claimed(account.claim())["id"] == second["id"], "others are not held up"
    done(account.do("complete", mine["id"]))
    third = pending(account)
    assert claimed(account.claim(session_id=life["session_id"]))["id"] == third["id"]


def test_a_lane_takes_one_at_a_time_whatever_the_limit(account):
    life = begin(account, lane=True)
    made = [pending(account) for _ in range(3)]
    body = done(account.claim(session_id=life["session_id"], limit=3))
    assert [task["id"] for task in body["tasks"]] == [made[0]["id"]]


def test_a_busy_lane_does_not_wait(account):
    life = begin(account, lane=True)
    claim_task(account, life)
    assert done(account.claim(session_id=life["session_id"], wait_seconds=60))["message"] == "busy"


def test_ten_claims_of_one_lane_at_once_win_one_task(account):
    life = begin(account, lane=True)
    for _ in range(10):
        pending(account)
    with Callers() as callers:
        sent = [callers.send(account.claim, session_id=life["session_id"]) for _ in range(10)]
        bodies = [done(future.result(10)[0]) for future in sent]
    assert sorted(body.get("message", "") for body in bodies) == [""] + ["busy"] * 9


def test_a_session_that_is_no_lane_holds_many(account):
    life = begin(account)
    assert {claim_task(account, life)["sessionId"] for _ in range(3)} == {life["session_id"]}
