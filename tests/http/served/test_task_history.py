"""Events and attempts of a task, readable with every key of the account."""

import pytest

from tests.compat.orchestrion.expect import ABSENT, claimed
from tests.compat.orchestrion.states import held, pending
from tests.http.replies import done, events, refused
from tests.http.session_client import begin

pytestmark = pytest.mark.waits(9)

pytest_plugins = ["tests.http.fresh_accounts"]


def history(account, task_id):
    return done(account.get(f"/v1/tasks/{task_id}/events"))["events"]


def attempts(account, task_id):
    return done(account.get(f"/v1/tasks/{task_id}/attempts"))["attempts"]


@pytest.fixture
def finished_task(account):
    """A task that was failed once, released once, and completed by a third worker."""
    mine = held(account)
    for verb, fields in (("fail", {"reason": "it broke", "error_code": "E1"}), ("release", {})):
        done(account.do("heartbeat", mine["id"], progress=0.5))
        done(account.do(verb, mine["id"], **fields))
        claimed(account.do("claim", mine["id"], worker_id=f"after {verb}"))
    done(account.complete(mine["id"], result={"n": 1}))
    return mine


def test_the_events_of_a_task_tell_its_whole_life_in_order(account, finished_task):
    told = history(account, finished_task["id"])
    assert [event["kind"].removeprefix("task.") for event in told] == [
        "created", "claimed", "renewed", "failed", "claimed", "renewed", "released", "claimed", "completed",
    ]  # fmt: skip
    assert [event["version"] for event in told] == list(range(1, 10))
    assert told == events(account, f"subject=task:{finished_task['id']}")


def test_an_event_says_who_did_it_by_which_request_and_what_changed(account, finished_task):
    answer = account.do("cancel", pending(account)["id"])
    event = events(account)[-1]
    assert event["request_id"] == answer.header("X-Request-Id")
    assert event["actor"] == history(account, finished_task["id"])[0]["actor"]
    assert event["data"]["state"] == "cancelled"
    assert "payload" not in event["data"]


def test_large_values_are_in_events_as_hash_and_size(account, finished_task):
    told = {event["kind"]: event["data"] for event in history(account, finished_task["id"])}
    assert told["task.completed"]["result"].keys() == {"sha256", "size"}
    assert told["task.completed"]["result"]["size"] == len('{"n":1}')


def test_the_attempts_of_a_task_tell_who_held_it_and_how_that_went(account, finished_task):
    tried = attempts(account, finished_task["id"])
    assert [(one["attempt"], one["worker"], one["outcome"]) for one in tried] == [
        (1, None, "failed"),
        (2, "after fail", "released"),
        (3, "after release", "completed"),
    ]
    assert (tried[0]["reason"], tried[0]["errorCode"]) == ("it broke", "E1")
    assert [one["fencingToken"] for one in tried] == sorted({one["fencingToken"] for one in tried})
    for one in tried:
        assert one["claimedAt"] <= one["lastSeenAt"] <= one["endedAt"]


def test_an_attempt_that_goes_on_has_no_end_yet(account):
    mine = held(account)
    (tried,) = attempts(account, mine["id"])
    assert (tried["endedAt"], tried["outcome"], tried["fencingToken"]) == (None, None, mine["fencingToken"])
    beat = done(account.do("heartbeat", mine["id"]))
    assert attempts(account, mine["id"])[0]["lastSeenAt"] == beat["updatedAt"]


def test_a_task_that_was_never_held_has_no_attempts(account):
    assert attempts(account, pending(account)["id"]) == []


def test_an_attempt_that_was_resumed_is_one_attempt_with_the_newest_token(account):
    life = begin(account)
    mine = claimed(account.do("claim", pending(account)["id"], session_id=life["session_id"]))
    (resumed,) = begin(account, status=200, secret=life["secret"])["tasks"]
    (tried,) = attempts(account, mine["id"])
    assert (tried["attempt"], tried["fencingToken"], tried["endedAt"]) == (1, resumed["fencingToken"], None)


def test_an_attempt_that_ran_out_says_so(expired_session):
    (tried,) = attempts(expired_session.account, expired_session.tasks["worked on"]["id"])
    assert (tried["worker"], tried["outcome"], tried["reason"]) == ("silent", "expired", "session expired")


@pytest.mark.parametrize("what", ["events", "attempts"])
def test_the_history_of_an_unknown_task_is_not_found(account, what):
    refused(account.get(f"/v1/tasks/{ABSENT}/{what}"), 404, "task_not_found")
