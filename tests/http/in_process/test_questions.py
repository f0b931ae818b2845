"""`/v1/questions` and `/v1/tasks/{id}/ask`: bodies, scopes, precise errors, the list and its pages."""

import pytest

from tests.compat.orchestrion.account import Account
from tests.http.replies import done, refused_as_problem


def with_scopes(account, *scopes):
    made = done(account.post("/v1/keys", {"name": "-".join(scopes), "scopes": list(scopes)}), 201)
    return Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})


def held(account, **fields):
    made = done(account.post("/v1/tasks", {"type": "work", "payload": {}, **fields}), 201)
    return done(account.post(f"/v1/tasks/{made['id']}/claim", {"worker_id": "w1"}))


def ask(account, task, **fields):
    body = {"lease_id": task["leaseId"], "question": "Which one?", **fields}
    return account.post(f"/v1/tasks/{task['id']}/ask", body)


def answer(account, question, text, **fields):
    return account.post(f"/v1/questions/{question}/answer", {"answer": text, **fields})


def test_a_question_is_asked_read_and_answered_and_the_next_claim_has_all_of_it(account):
    task = held(account)
    waiting = done(ask(account, task, choices=["a", "b"], checkpoint={"page": 3}))
    assert (waiting["status"], waiting["waitingFor"], waiting["attemptCount"]) == ("pending", "answer", 0)
    asked = done(account.get(f"/v1/questions/{waiting['questionId']}"))
    shown = {"status": "open", "question": "Which one?", "choices": ["a", "b"], "task_id": task["id"], "worker": "w1"}
    assert shown.items() <= asked.items()
    person = with_scopes(account, "answer")
    assert done(person.get(f"/v1/questions/{asked['id']}"))["question"] == "Which one?"
    given = done(answer(person, asked["id"], "b", reason="cheaper"))
    assert (given["status"], given["answered_by"], given["task_status"]) == ("answered", "answer", "pending")
    again = done(account.post(f"/v1/tasks/{task['id']}/claim", {}))
    assert {"question": "Which one?", "answer": "b", "answeredBy": "answer", "reason": "cheaper"}.items() <= (
        again["answered"].items()
    )
    assert again["previousAttempt"]["checkpoint"] == {"page": 3}
    assert again["previousAttempt"]["outcome"] == "asked"
    assert "questionId" not in again


@pytest.mark.parametrize("scopes", [("tasks",), ("jobs", "tasks", "read"), ("tasks:work",), ("tasks:produce", "read")])
def test_keys_of_workers_and_machines_cannot_answer(account, scopes):
    question = done(ask(account, held(account)))["questionId"]
    worker = with_scopes(account, *scopes)
    assert answer(worker, question, "a").status == 403
    assert done(worker.get(f"/v1/questions/{question}"))["status"] == "open"


def test_a_key_that_only_answers_cannot_claim_or_create(account):
    person = with_scopes(account, "answer")
    assert person.post("/v1/tasks", {"type": "work", "payload": {}}).status == 403
    assert person.post("/v1/tasks/claim", {"type": "work"}).status == 403
    assert person.get("/v1/tasks").status == 403


def test_an_approval_is_asked_for_at_creation(account):
    fields = {"type": "work", "payload": {}, "approval": {"question": "Delete it?", "deadline": "2999-01-01T00:00:00Z"}}
    refused = account.post("/v1/tasks", fields)
    assert refused.status == 400
    made = done(account.post("/v1/tasks", fields | {"approval": {"question": "Delete it?"}}), 201)
    assert made["waitingFor"] == "answer"
    blocked = account.post(f"/v1/tasks/{made['id']}/claim", {})
    assert (blocked.status, blocked.json["error"]) == (409, "not_yet_claimable")
    asked = done(account.get(f"/v1/questions/{made['questionId']}"))
    assert (asked["kind"], asked["choices"], asked["question"]) == ("approval", ["approve", "reject"], "Delete it?")
    done(answer(account, asked["id"], "reject", reason="keep it"))
    after = done(account.get(f"/v1/tasks/{made['id']}"))
    assert after["status"] == "cancelled"
    assert after["cancelReason"].endswith("rejected it: keep it")


@pytest.mark.parametrize("approval", [False, None])
def test_a_task_without_approval_can_be_claimed_at_once(account, approval):
    held(account, approval=approval)


def test_a_batch_creates_tasks_with_approval(account):
    items = [{"op": "create", "type": "work", "payload": {}, "approval": True}]
    (result,) = done(account.post("/v1/tasks/batch", {"items": items, "full": True}))["results"]
    assert result["task"]["waitingFor"] == "answer"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"question": " "}, "/question"),
        ({"question": "x" * 4097}, "/question"),
        ({"choices": [str(number) for number in range(21)]}, "/choices"),
        ({"choices": ["a", "a"]}, "/choices"),
        ({"choices": [""]}, "/choices/0"),
        ({"deadline": "tomorrow"}, "/deadline"),
        ({"deadline": "2020-01-01T00:00:00Z"}, "/deadline"),
        ({"onTimeout": "a"}, "/onTimeout"),
    ],
)
def test_a_wrong_question_is_refused_and_the_task_stays_held(account, fields, pointer):
    task = held(account)
    refused = ask(account, task, **fields)
    assert refused.status == 400
    assert pointer in {error["pointer"] for error in refused.json["errors"]}
    assert done(account.get(f"/v1/tasks/{task['id']}"))["status"] == "claimed"


def test_a_closed_question_and_a_wrong_choice_are_refused(account):
    question = done(ask(account, held(account), choices=["a", "b"]))["questionId"]
    refused_as_problem(answer(account, question, "c"), 400, "invalid_request")
    done(answer(account, question, "a"))
    refused_as_problem(answer(account, question, "b"), 409, "question_closed")
    refused_as_problem(answer(account, "tsk_none-1", "b"), 404, "question_not_found")


def test_the_list_has_open_questions_first_and_its_pages_have_each_once(account):
    asked = [done(ask(account, held(account)))["questionId"] for _ in range(5)]
    for question in (asked[1], asked[3]):
        done(answer(account, question, "a"))
    found, cursor = [], ""
    while cursor is not None:
        page = done(account.get(f"/v1/questions?limit=2{cursor and f'&cursor={cursor}'}"))
        found += [each["id"] for each in page["questions"]]
        cursor = page["nextCursor"]
    assert found == [asked[0], asked[2], asked[4], asked[3], asked[1]]
    assert account.get("/v1/questions?cursor=nonsense").status == 400


def test_cancelling_the_task_withdraws_the_question(account):
    task = held(account)
    question = done(ask(account, task))["questionId"]
    done(account.post(f"/v1/tasks/{task['id']}/cancel", {}))
    assert done(account.get(f"/v1/questions/{question}"))["status"] == "withdrawn"
