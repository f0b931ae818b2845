"""Checkpoint, progress and note for the next attempt, and releases that use up no attempt."""

import pytest

from tests.compat.orchestrion.expect import assert_lasts, claimed
from tests.compat.orchestrion.states import held
from tests.http.replies import done, refused
from tests.http.session_client import begin

pytestmark = pytest.mark.waits(9)

pytest_plugins = ["tests.http.fresh_accounts"]

LEFT = {"checkpoint": {"page": [1, 2, {"x": None}]}, "note": "mind the gap"}
LEAVING = {"fail": {"reason": "it broke", "retry_after_seconds": 0}, "release": {}, "snooze": {"seconds": 0}}


def again(account, mine):
    return claimed(account.do("claim", mine["id"], worker_id="next"))


@pytest.mark.parametrize("verb", LEAVING)
def test_the_next_attempt_gets_what_the_last_one_left_while_it_worked(account, verb):
    mine = claimed(account.do("claim", held_free(account), worker_id="first"))
    done(account.do("heartbeat", mine["id"], lease_id=mine["leaseId"], **LEFT))
    ended = done(account.do(verb, mine["id"], lease_id=mine["leaseId"], **LEAVING[verb]))
    previous = again(account, mine)["previousAttempt"]
    assert previous == ended["previousAttempt"]
    assert (previous["checkpoint"], previous["note"]) == (LEFT["checkpoint"], LEFT["note"])
    assert (previous["worker"], previous["attempt"], previous["contextFrom"]) == ("first", 1, 1)
    outcome = {"fail": "failed", "release": "released", "snooze": "snoozed"}[verb]
    assert (previous["outcome"], previous["endedAt"]) == (outcome, ended["updatedAt"])
    assert previous["reason"] == LEAVING[verb].get("reason")


@pytest.mark.parametrize("verb", LEAVING)
def test_checkpoint_and_note_of_the_last_verb_reach_the_next_attempt(account, verb):
    mine = held(account)
    done(account.do("heartbeat", mine["id"], checkpoint="an older one", note="an older one"))
    done(account.do(verb, mine["id"], **LEFT, **LEAVING[verb]))
    previous = again(account, mine)["previousAttempt"]
    assert (previous["checkpoint"], previous["note"]) == (LEFT["checkpoint"], LEFT["note"])


def test_what_a_heartbeat_does_not_mention_stays(account):
    mine = held(account)
    done(account.do("heartbeat", mine["id"], checkpoint=1, note="one", progress=0.1))
    seen = done(account.do("heartbeat", mine["id"], note="two"))
    assert (seen["checkpoint"], seen["note"], seen["progress"]) == (1, "two", 0.1)


def test_everybody_sees_progress_while_the_task_is_held_and_not_longer(account):
    mine = held(account)
    done(account.do("heartbeat", mine["id"], progress={"done": 3, "of": 5}))
    assert done(account.read_task(mine["id"]))["progress"] == {"done": 3, "of": 5}
    done(account.do("release", mine["id"]))
    assert "progress" not in done(account.read_task(mine["id"]))
    assert "progress" not in again(account, mine)


def test_a_new_attempt_begins_without_a_checkpoint_of_its_own(account):
    mine = held(account)
    done(account.do("fail", mine["id"], **LEFT))
    second = again(account, mine)
    assert not second.keys() & {"checkpoint", "note", "progress"}


def test_an_attempt_that_left_nothing_does_not_wipe_out_what_an_earlier_one_left(account):
    mine = held(account, maxAttempts=10)
    done(account.do("fail", mine["id"], **LEFT))
    for attempt in (2, 3):
        again(account, mine)
        done(account.do("fail", mine["id"], reason=f"attempt {attempt}"))
    previous = again(account, mine)["previousAttempt"]
    assert (previous["attempt"], previous["contextFrom"], previous["reason"]) == (3, 1, "attempt 3")
    assert (previous["checkpoint"], previous["note"]) == (LEFT["checkpoint"], LEFT["note"])


def test_an_attempt_that_left_something_replaces_all_of_it(account):
    mine = held(account)
    done(account.do("fail", mine["id"], **LEFT))
    again(account, mine)
    done(account.do("fail", mine["id"], note="only a note"))
    previous = again(account, mine)["previousAttempt"]
    assert (previous["checkpoint"], previous["note"], previous["contextFrom"]) == (None, "only a note", 2)


def test_a_failure_has_a_reason_and_an_error_code(account):
    mine = held(account)
    done(account.do("fail", mine["id"], reason="the disk is full", error_code="ENOSPC"))
    previous = again(account, mine)["previousAttempt"]
    assert (previous["reason"], previous["errorCode"]) == ("the disk is full", "ENOSPC")


def test_the_checkpoint_of_a_lost_worker_is_its_successors(expired_session):
    seen = done(expired_session.account.read_task(expired_session.tasks["worked on"]["id"]))
    previous = seen["previousAttempt"]
    assert (seen["status"], previous["outcome"], previous["worker"]) == ("pending", "expired", "silent")
    assert (previous["checkpoint"], previous["note"]) == ({"page": 7}, "half way")


# -- released ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["release", "snooze"])
def test_work_that_is_released_costs_no_attempt(account, verb):
    mine = held(account, maxAttempts=1)
    for _ in range(3):
        assert done(account.do(verb, mine["id"], **LEAVING[verb]))["attemptCount"] == 0
        assert again(account, mine)["attemptCount"] == 1
    assert done(account.do("fail", mine["id"]))["status"] == "dead_letter"


def test_a_released_task_is_claimable_at_once(account):
    mine = held(account)
    assert done(account.do("release", mine["id"]))["scheduledAt"] is None
    assert claimed(account.claim())["id"] == mine["id"]


@pytest.mark.parametrize(("verb", "field"), [("release", "delay_seconds"), ("snooze", "seconds")])
def test_a_task_released_for_a_while_waits_for_its_time(account, verb, field):
    mine = held(account)
    assert_lasts(done(account.do(verb, mine["id"], **{field: 50}))["scheduledAt"], 50)
    refused(account.do("claim", mine["id"]), 409, "not_yet_claimable")
    assert done(account.claim())["message"] == "no_tasks"


def test_each_attempt_has_a_number_of_its_own_also_the_uncounted_ones(account):
    mine = held(account)
    done(account.do("release", mine["id"]))
    second = again(account, mine)
    assert (mine["attempt"], second["attempt"], second["attemptCount"]) == (1, 2, 1)


def test_the_end_of_a_session_hands_its_tasks_back_uncounted(account):
    life = begin(account)
    mine = claimed(account.do("claim", held_free(account), session_id=life["session_id"], worker_id="me"))
    done(account.do("heartbeat", mine["id"], **LEFT))
    done(account.send_json("DELETE", f"/v1/sessions/{life['session_id']}", {"lease_id": life["lease_id"]}))
    second = again(account, mine)
    assert (second["attemptCount"], second["previousAttempt"]["outcome"]) == (1, "session_ended")
    assert second["previousAttempt"]["checkpoint"] == LEFT["checkpoint"]


def held_free(account):
    """The id of a pending task."""
    return done(account.create(), 201)["id"]
