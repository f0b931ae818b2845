"""Resources of another account are not found."""

import pytest

from tests.compat.orchestrion.account import BY_ID
from tests.compat.orchestrion.expect import ABSENT, bare, claimed, ids_of, no_tasks, page, refused, task
from tests.compat.orchestrion.states import STATES, held, pending

ROUTES = ("read", *BY_ID)


def ask(caller, route, task_id):
    return caller.read_task(task_id) if route == "read" else caller.do(route, task_id)


@pytest.mark.parametrize("route", ROUTES)
def test_a_task_of_another_account_is_not_found(account, other_account, route):
    mine = {state: make(account)["id"] for state, make in STATES.items()}
    before = {task_id: bare(task(account.read_task(task_id))) for task_id in mine.values()}
    absent = anonymous(ask(other_account, route, ABSENT), ABSENT)
    for task_id in mine.values():
        answer = ask(other_account, route, task_id)
        refused(answer, 404, "task_not_found")
        assert anonymous(answer, task_id) == absent
    assert {task_id: bare(task(account.read_task(task_id))) for task_id in mine.values()} == before


def anonymous(answer, task_id):
    """The whole answer, but for what is different in every request."""
    request_id = answer.header("X-Request-Id")
    body = answer.raw.replace(request_id.encode(), b"REQUEST").replace(task_id.encode(), b"TASK")
    names = sorted(name.lower() for name in answer.headers)
    return answer.status, names, answer.header("Content-Type"), body


def test_an_invalid_body_does_not_reveal_a_task_of_another_account(account, other_account):
    mine = held(account)["id"]
    for verb, fields in (("claim", {"worker_id": 5}), ("complete", {"result": 5}), ("fail", {"reason": 5})):
        foreign, absent = other_account.do(verb, mine, **fields), other_account.do(verb, ABSENT, **fields)
        assert anonymous(foreign, mine) == anonymous(absent, ABSENT)


def test_a_list_contains_only_tasks_of_the_account(account, other_account):
    mine, theirs = pending(account)["id"], pending(other_account)["id"]
    assert ids_of(page(account.list())) == [mine]
    assert ids_of(page(other_account.list())) == [theirs]
    assert ids_of(page(other_account.list("type=work&status=pending"))) == [theirs]


def test_a_cursor_of_another_account_returns_only_own_tasks(account, other_account):
    for _ in range(3):
        pending(account)
    theirs = pending(other_account)["id"]
    cursor = page(account.list("limit=1"))["nextCursor"]
    answer = other_account.list(f"cursor={cursor}")
    assert answer.status == 400 or set(ids_of(page(answer))) <= {theirs}


def test_a_claim_returns_only_tasks_of_the_account(account, other_account):
    mine = pending(account, priority=100)
    no_tasks(other_account.claim())
    no_tasks(other_account.post("/v1/tasks/claim", {}))
    assert task(account.read_task(mine["id"])) == mine
    theirs = pending(other_account)
    assert claimed(other_account.claim())["id"] == theirs["id"]
    assert claimed(account.claim())["id"] == mine["id"]
