"""After a failure: how long until the next attempt, when there is none, and what becomes of dead letters."""

import pytest

from tests.compat.orchestrion.expect import claimed, ids_of, instant
from tests.compat.orchestrion.states import dead, held
from tests.http.replies import caused_by, done, nothing_changes, refused

pytestmark = pytest.mark.waits(9)

pytest_plugins = ["tests.http.fresh_accounts"]

MILLISECOND = 0.001


def delay(failed):
    """Seconds from a failure to the next attempt; None for at once."""
    if failed["scheduledAt"] is None:
        return None
    return instant(failed["scheduledAt"]) - instant(failed["updatedAt"])


def about(seconds):
    return pytest.approx(seconds, abs=1.5 * MILLISECOND)


# -- backoff -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ({"kind": "fixed", "base_seconds": 0.02}, [0.02, 0.02, 0.02]),
        ({"kind": "linear", "base_seconds": 0.02}, [0.02, 0.04, 0.06]),
        ({"kind": "exponential", "base_seconds": 0.02}, [0.02, 0.04, 0.08]),
        ({"kind": "exponential", "base_seconds": 0.02, "max_seconds": 0.05}, [0.02, 0.04, 0.05]),
    ],
)
def test_each_failure_waits_as_its_policy_says(account, backoff, delays):
    mine = held(account, backoff=backoff, maxAttempts=4)
    for seconds in delays:
        failed = done(account.fail(mine["id"]))
        assert delay(failed) == about(seconds)
        assert claimed(account.claim(wait_seconds=5))["id"] == mine["id"], "it is handed out when it is due"
    assert done(account.fail(mine["id"]))["status"] == "dead_letter"


def test_a_policy_without_numbers_begins_at_one_second(account):
    assert delay(done(account.fail(held(account, backoff={"kind": "exponential"})["id"]))) == about(1)


def test_jitter_takes_up_to_its_part_of_the_delay_away(account):
    policy = {"kind": "fixed", "base_seconds": 1000, "jitter": 0.5}
    delays = {delay(done(account.fail(held(account, backoff=policy)["id"]))) for _ in range(12)}
    assert len(delays) > 6
    assert 500 <= min(delays) < max(delays) <= 1000.01


def test_retry_after_seconds_overrides_the_backoff_policy(account):
    mine = held(account, backoff={"kind": "fixed", "base_seconds": 500})
    assert delay(done(account.fail(mine["id"], retry_after_seconds=7))) == about(7)


def test_a_policy_travels_with_its_task(account):
    policy = {"kind": "linear", "base_seconds": 3.0, "max_seconds": 30.0, "jitter": 0.25}
    mine = held(account, backoff=policy)
    assert done(account.read_task(mine["id"]))["backoff"] == policy


# -- dead letters ------------------------------------------------------------------------------------------------


def test_a_permanent_failure_is_a_dead_letter_at_once(account):
    mine = held(account, maxAttempts=10)
    failed = done(account.fail(mine["id"], permanent=True, reason="no such file"))
    assert (failed["status"], failed["deadLetterCause"], failed["attemptCount"]) == ("dead_letter", "permanent", 1)
    assert failed["failureReason"] == "no such file"


def test_the_last_failure_says_that_the_attempts_are_used_up(account):
    assert dead(account)["deadLetterCause"] == "attempts_exhausted"


def test_a_task_whose_worker_died_with_its_last_attempt_says_so(expired_session):
    seen = done(expired_session.account.read_task(expired_session.tasks["on its last attempt"]["id"]))
    assert (seen["status"], seen["deadLetterCause"]) == ("dead_letter", "lease_expired")


def test_a_requeued_task_may_remember_its_attempts(account):
    mine = dead(account)
    again = done(account.do("requeue", mine["id"], reset_attempts=False))
    assert (again["status"], again["attemptCount"]) == ("pending", 1)
    assert claimed(account.do("claim", mine["id"]))["attemptCount"] == 2
    assert done(account.fail(mine["id"]))["status"] == "dead_letter"


def test_a_requeued_task_is_no_dead_letter_in_any_way(account):
    mine = dead(account)
    done(account.do("resolve", mine["id"]))
    again = done(account.do("requeue", mine["id"]))
    assert again["attemptCount"] == 0
    assert not again.keys() & {"deadLetterCause", "resolvedAt"}


def test_a_dead_letter_can_be_resolved_and_stays_one(account):
    mine = dead(account)
    assert "resolvedAt" not in mine
    answer = account.do("resolve", mine["id"])
    resolved = done(answer)
    assert (resolved["status"], resolved["resolvedAt"]) == ("dead_letter", resolved["updatedAt"])
    assert [event["kind"] for event in caused_by(account, answer)] == ["task.resolved"]
    with nothing_changes(account):
        assert done(account.do("resolve", mine["id"])) == resolved


def test_unresolved_dead_letters_can_be_listed_apart_from_resolved_ones(account):
    open_one, resolved = dead(account), dead(account)
    done(account.do("resolve", resolved["id"]))
    assert ids_of(done(account.list("status=dead_letter&resolved=false"))) == [open_one["id"]]
    assert ids_of(done(account.list("status=dead_letter&resolved=true"))) == [resolved["id"]]


@pytest.mark.parametrize("verb", ["resolve", "requeue"])
def test_only_a_dead_letter_is_resolved_or_requeued(account, verb):
    mine = held(account)
    with nothing_changes(account):
        refused(account.do(verb, mine["id"]), 409, "invalid_transition")
