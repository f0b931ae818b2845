"""Many callers at once: every task has one winner, and every answer is won, lost or empty."""

from collections import Counter

from tests.compat.orchestrion.account import all_at_once
from tests.compat.orchestrion.expect import claimed, created, no_tasks, page, refused, task
from tests.compat.orchestrion.states import held, pending


def test_fifty_claims_on_ten_tasks_have_ten_winners(account):
    made = {pending(account)["id"] for _ in range(10)}
    answers = all_at_once(50, lambda place: account.claim(worker_id=f"worker-{place}"))
    assert Counter(answer.status for answer in answers) == {200: 50}
    won = [claimed(answer) for answer in answers if answer.json["task"]]
    assert len(won) == 10
    assert {mine["id"] for mine in won} == made
    for answer in answers:
        if not answer.json["task"]:
            no_tasks(answer)
    for mine in won:
        observed = task(account.read_task(mine["id"]))
        assert (observed["attemptCount"], observed["claimedBy"]) == (1, mine["claimedBy"])


def test_twenty_claims_by_id_have_one_winner(account):
    made = pending(account)
    answers = all_at_once(20, lambda place: account.do("claim", made["id"], worker_id=f"worker-{place}"))
    (winner,) = [claimed(answer) for answer in answers if answer.status == 200]
    for answer in answers:
        if answer.status != 200:
            refused(answer, 409, "task_currently_claimed", made["id"])
    observed = task(account.read_task(made["id"]))
    assert (observed["attemptCount"], observed["claimedBy"]) == (1, winner["claimedBy"])


def test_claims_by_id_and_by_type_never_share_a_task(account):
    made = [pending(account)["id"] for _ in range(8)]
    answers = all_at_once(24, lambda place: account.claim() if place % 2 else account.do("claim", made[place % 8]))
    won = [answer.json["id"] for answer in answers if answer.status == 200 and answer.json["task"]]
    assert len(won) == len(set(won))
    assert {answer.status for answer in answers} <= {200, 409}
    assert all(listed["attemptCount"] <= 1 for listed in page(account.list())["tasks"])


def test_of_many_completions_one_is_stored_and_the_others_are_refused(account):
    mine = held(account)
    answers = all_at_once(10, lambda place: account.complete(mine["id"], result={"place": place}))
    kept = task(account.read_task(mine["id"]))
    assert kept["result"]["place"] in range(10)
    assert [task(answer) for answer in answers if answer.status == 200] == [kept]
    for answer in answers:
        if answer.status != 200:
            refused(answer, 409, "invalid_transition", mine["id"])


def test_a_completion_and_a_failure_at_once_leave_one_outcome(account):
    mine = [held(account)["id"] for _ in range(6)]
    verbs = ("complete", "fail")
    answers = all_at_once(12, lambda place: account.do(verbs[place % 2], mine[place // 2]))
    for place, task_id in enumerate(mine):
        finished, failed = answers[2 * place : 2 * place + 2]
        state = task(account.read_task(task_id))["status"]
        assert (finished.status, failed.status, state) in {(200, 409, "completed"), (409, 200, "pending")}


def test_of_many_failures_each_attempt_is_failed_once(account):
    mine = held(account, maxAttempts=2)
    answers = all_at_once(8, lambda place: account.fail(mine["id"], reason=f"reason {place}"))
    (failed,) = [task(answer) for answer in answers if answer.status == 200]
    for answer in answers:
        if answer.status != 200:
            refused(answer, 409, "invalid_transition", mine["id"])
    assert task(account.read_task(mine["id"])) == failed


def test_a_cancellation_and_a_claim_at_once_leave_one_outcome(account):
    made = [pending(account)["id"] for _ in range(6)]
    verbs = ("cancel", "claim")
    answers = all_at_once(12, lambda place: account.do(verbs[place % 2], made[place // 2]))
    for place, task_id in enumerate(made):
        dropped, taken = answers[2 * place : 2 * place + 2]
        state = task(account.read_task(task_id))["status"]
        assert (dropped.status, taken.status, state) in {(200, 409, "cancelled"), (409, 200, "claimed")}


def test_all_tasks_created_at_once_are_listed(account):
    answers = all_at_once(30, lambda place: account.create(payload={"place": place}))
    made = [created(answer) for answer in answers]
    listed = page(account.list("limit=100"))["tasks"]
    assert {one["id"] for one in listed} == {one["id"] for one in made}
    assert sorted(one["payload"]["place"] for one in listed) == list(range(30))
