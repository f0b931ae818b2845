"""Cancelling: every cell of the table in docs/reference/api.md, and what surrounds it."""

import pytest

from tests.compat.orchestrion.expect import claimed
from tests.compat.orchestrion.states import completed, dead, held, pending, retrying, scheduled
from tests.http.job_client import Callers
from tests.http.replies import caused_by, done, nothing_changes, refused

pytestmark = pytest.mark.waits(8)

pytest_plugins = ["tests.http.fresh_accounts"]

MODES = ("pending", "request", "force")
THEN = {
    "heartbeat": {},
    "complete": {"result": {"n": 1}},
    "fail": {"reason": "it broke"},
    "release": {},
    "snooze": {"seconds": 60},
    "cancel": {},
    "lapse": {},
}
TABLE = {
    ("heartbeat", "request"): (200, "claimed"),
    ("complete", "request"): (200, "completed"),
    ("fail", "request"): (200, "cancelled"),
    ("release", "request"): (200, "cancelled"),
    ("snooze", "request"): (200, "cancelled"),
    ("lapse", "request"): (None, "cancelled"),
    ("cancel", "request"): (200, "claimed"),
    ("heartbeat", "force"): (409, "cancelled"),
    ("complete", "force"): (409, "cancelled"),
    ("fail", "force"): (409, "cancelled"),
    ("release", "force"): (409, "cancelled"),
    ("snooze", "force"): (409, "cancelled"),
    ("lapse", "force"): (None, "cancelled"),
    ("cancel", "force"): (200, "cancelled"),
}
LAPSED = {"request": "asked to stop", "force": "ended by force"}


@pytest.mark.parametrize("with_proof", [True, False])
@pytest.mark.parametrize(("verb", "mode"), [cell for cell in TABLE if cell[0] != "lapse"])
def test_every_verb_after_a_cancel_of_a_held_task_in_every_mode(account, verb, mode, with_proof):
    status, state = TABLE[verb, mode]
    mine = held(account)
    done(account.do("cancel", mine["id"], mode=mode))
    fields = {"mode": mode} if verb == "cancel" else THEN[verb]
    if with_proof and verb != "cancel":
        fields = {"lease_id": mine["leaseId"], **fields}
    answer = account.do(verb, mine["id"], **fields)
    assert answer.status == status, str(answer)
    assert done(account.read_task(mine["id"]))["status"] == state
    assert len(caused_by(account, answer)) == (0 if status == 409 or verb == "cancel" else 1)


@pytest.mark.parametrize("mode", LAPSED)
def test_a_cancelled_task_whose_lease_runs_out_is_cancelled(expired_session, mode):
    status, state = TABLE["lapse", mode]
    assert status is None, "nobody asks: it happens by itself"
    mine = expired_session.tasks[LAPSED[mode]]
    seen = done(expired_session.account.read_task(mine["id"]))
    assert (seen["status"], seen["leaseExpiresAt"]) == (state, None)
    with nothing_changes(expired_session.account):
        assert done(expired_session.account.do("cancel", mine["id"]))["status"] == "cancelled"


# -- asking ------------------------------------------------------------------------------------------------------


def test_the_next_heartbeat_asks_the_holder_to_stop(account):
    mine = held(account)
    assert mine["cancelRequested"] is False
    done(account.do("cancel", mine["id"], mode="request"))
    for body in (
        done(account.do("heartbeat", mine["id"], lease_id=mine["leaseId"])),
        done(account.read_task(mine["id"])),
    ):
        assert (body["status"], body["cancelRequested"]) == ("claimed", True)
        best = [step["action"] for step in body["agent_contract"]["next_actions"] if step["recommended"]]
        assert best == ["stop_work"]


def test_a_cancel_request_does_not_shorten_the_lease_and_ends_with_it(account):
    mine = held(account)
    assert done(account.do("cancel", mine["id"], mode="request"))["leaseExpiresAt"] == mine["leaseExpiresAt"]
    ended = done(account.do("complete", mine["id"]))
    assert "cancelRequested" not in ended


# -- by force ----------------------------------------------------------------------------------------------------


def test_a_task_ended_by_force_tells_why(account):
    mine = held(account)
    ended = done(account.do("cancel", mine["id"], mode="force", reason="wrong customer"))
    assert (ended["status"], ended["leaseExpiresAt"]) == ("cancelled", None)
    previous = ended["previousAttempt"]
    assert (previous["outcome"], previous["reason"]) == ("cancelled", "wrong customer")


def test_of_force_and_complete_at_once_one_wins(account):
    for _ in range(5):
        mine = held(account)
        with Callers() as callers:
            force = callers.send(account.do, "cancel", mine["id"], mode="force")
            complete = callers.send(account.do, "complete", mine["id"], lease_id=mine["leaseId"])
            statuses = force.result(5)[0].status, complete.result(5)[0].status
        assert sorted(statuses) == [200, 409]
        seen = done(account.read_task(mine["id"]))["status"]
        assert seen == ("cancelled" if statuses[0] == 200 else "completed")


# -- the rest ----------------------------------------------------------------------------------------------------


def test_plain_cancel_leaves_a_held_task_alone(account):
    mine = held(account)
    with nothing_changes(account):
        body = refused(account.do("cancel", mine["id"]), 409, "task_currently_claimed")
    assert "request" in body["message"]
    assert "force" in body["message"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", [pending, scheduled, retrying])
def test_a_task_that_nobody_holds_is_cancelled_at_once_in_every_mode(account, state, mode):
    mine = state(account)
    assert done(account.do("cancel", mine["id"], mode=mode))["status"] == "cancelled"
    assert done(account.claim())["message"] == "no_tasks"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", [completed, dead])
def test_a_finished_task_is_not_cancelled_in_any_mode(account, state, mode):
    mine = state(account)
    with nothing_changes(account):
        refused(account.do("cancel", mine["id"], mode=mode), 409, "invalid_transition")


@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_failed_waits_again_and_is_cancelled_at_once(account, mode):
    mine = held(account)
    done(account.fail(mine["id"]))
    assert done(account.do("cancel", mine["id"], mode=mode))["status"] == "cancelled"


def test_a_cancel_request_does_not_apply_to_the_next_holder(account):
    mine = held(account)
    done(account.do("release", mine["id"]))
    assert claimed(account.do("claim", mine["id"]))["cancelRequested"] is False
