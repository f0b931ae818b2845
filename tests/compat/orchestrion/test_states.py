"""Every verb in every state: allowed, or refused with its code and without a change."""

import pytest

from tests.compat.orchestrion.account import BY_ID
from tests.compat.orchestrion.expect import bare, claimed, not_yet_claimable, refused, task
from tests.compat.orchestrion.states import STATES

WRONG, HELD, EARLY = "invalid_transition", "task_currently_claimed", "not_yet_claimable"

# In the order of BY_ID: the state it leads to, or the word of the refusal.
TABLE = {
    #               claim      heartbeat  complete     fail       cancel       requeue
    "pending":     ("claimed", WRONG,     WRONG,       WRONG,     "cancelled", WRONG),
    "scheduled":   (EARLY,     WRONG,     WRONG,       WRONG,     "cancelled", WRONG),
    "retrying":    ("claimed", WRONG,     WRONG,       WRONG,     "cancelled", WRONG),
    "claimed":     (HELD,      "claimed", "completed", "pending", HELD,        WRONG),
    "completed":   (WRONG,     WRONG,     "completed", WRONG,     WRONG,       WRONG),
    "dead_letter": (WRONG,     WRONG,     WRONG,       WRONG,     WRONG,       "pending"),
    "cancelled":   (WRONG,     WRONG,     WRONG,       WRONG,     "cancelled", WRONG),
}  # fmt: skip

ROWS = [(state, verb, row[place]) for state, row in TABLE.items() for place, verb in enumerate(BY_ID)]
ALLOWED = [row for row in ROWS if row[2] not in {WRONG, HELD, EARLY}]
REFUSED = [row for row in ROWS if row[2] in {WRONG, HELD, EARLY}]


@pytest.mark.parametrize(("state", "verb", "reached"), ALLOWED)
def test_an_allowed_verb_changes_the_state(account, state, verb, reached):
    before = STATES[state](account)
    answer = account.do(verb, before["id"])
    after = claimed(answer) if verb == "claim" else task(answer)
    assert after["status"] == reached
    observed = bare(task(account.read_task(before["id"])))
    assert observed == {key: after[key] for key in observed}


@pytest.mark.parametrize(("state", "verb", "word"), REFUSED)
def test_a_refused_verb_changes_nothing(account, state, verb, word):
    before = task(account.read_task(STATES[state](account)["id"]))
    for _ in range(2):
        answer = account.do(verb, before["id"])
        if word == EARLY:
            not_yet_claimable(answer, before["id"], before["scheduledAt"])
        else:
            refused(answer, 409, word, before["id"])
    assert bare(task(account.read_task(before["id"]))) == bare(before)


@pytest.mark.parametrize(("state", "verb"), [("completed", "complete"), ("cancelled", "cancel")])
def test_a_repeated_verb_returns_the_same_and_changes_nothing(account, state, verb):
    before = STATES[state](account)
    assert task(account.do(verb, before["id"])) == before
    assert task(account.read_task(before["id"])) == before


def test_a_second_completion_does_not_replace_the_first(account):
    """The original would drop the second result; here, 200 means that the result is stored."""
    done = STATES["completed"](account, result={"n": 1}, output_id="out_1")
    for same in ({}, {"result": {"n": 1}, "output_id": "out_1"}):
        assert task(account.complete(done["id"], **same)) == done
    for other in ({"result": {"n": 2}}, {"output_id": "out_2"}):
        refused(account.complete(done["id"], **other), 409, "invalid_transition", done["id"])
    assert task(account.read_task(done["id"])) == done
