"""What belongs to another account does not exist."""

import pytest

from tests.compat.orchestrion.account import BY_ID
from tests.compat.orchestrion.expect import ABSENT, bare, claimed, ids_of, no_tasks, page, refused, task
from tests.compat.orchestrion.states import STATES, held, pending

ROUTES = ("see", *BY_ID)


def ask(caller, route, task_id):
    return caller.see(task_id) if route == "see" else caller.do(route, task_id)


@pytest.mark.parametrize("route", ROUTES)
def test_a_foreign_task_looks_exactly_like_one_that_is_not_there(account, stranger, route):
    mine = {state: make(account)["id"] for state, make in STATES.items()}
    before = {task_id: bare(task(account.see(task_id))) for task_id in mine.values()}
    absent = anonymous(ask(stranger, route, ABSENT), ABSENT)
    for task_id in mine.values():
        answer = ask(stranger, route, task_id)
        refused(answer, 404, "task_not_found")
        assert anonymous(answer, task_id) == absent
    assert {task_id: bare(task(account.see(task_id))) for task_id in mine.values()} == before


def anonymous(answer, task_id):
    """The whole answer, but for what is different in every request."""
    request_id = answer.header("X-Request-Id")
    body = answer.raw.replace(request_id.encode(), b"REQUEST").replace(task_id.encode(), b"TASK")
    names = sorted(name.lower() for name in answer.headers)
    return answer.status, names, answer.header("Content-Type"), body


def test_bodies_that_are_wrong_do_not_tell_foreign_from_absent(account, stranger):
    mine = held(account)["id"]
    for verb, fields in (("claim", {"worker_id": 5}), ("complete", {"result": 5}), ("fail", {"reason": 5})):
        foreign, absent = stranger.do(verb, mine, **fields), stranger.do(verb, ABSENT, **fields)
        assert anonymous(foreign, mine) == anonymous(absent, ABSENT)


def test_a_list_shows_only_ones_own_tasks(account, stranger):
    mine, theirs = pending(account)["id"], pending(stranger)["id"]
    assert ids_of(page(account.list())) == [mine]
    assert ids_of(page(stranger.list())) == [theirs]
    assert ids_of(page(stranger.list("type=work&status=pending"))) == [theirs]


def test_a_foreign_cursor_shows_only_ones_own_tasks(account, stranger):
    for _ in range(3):
        pending(account)
    theirs = pending(stranger)["id"]
    cursor = page(account.list("limit=1"))["nextCursor"]
    answer = stranger.list(f"cursor={cursor}")
    assert answer.status == 400 or set(ids_of(page(answer))) <= {theirs}


def test_a_claim_takes_only_ones_own_tasks(account, stranger):
    mine = pending(account, priority=100)
    no_tasks(stranger.claim())
    no_tasks(stranger.post("/v1/tasks/claim", {}))
    assert task(account.see(mine["id"])) == mine
    theirs = pending(stranger)
    assert claimed(stranger.claim())["id"] == theirs["id"]
    assert claimed(account.claim())["id"] == mine["id"]
