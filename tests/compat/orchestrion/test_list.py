"""The list: newest first, in pages, filtered, every task with its own contract."""

import time

import pytest

from tests.compat.orchestrion.contracts import CLAIM, CREATE
from tests.compat.orchestrion.expect import bare, ids_of, page, task
from tests.compat.orchestrion.states import STATES, cancelled, held, pending

STATUSES = ("pending", "claimed", "completed", "dead_letter", "cancelled")


def some(account, count, **fields):
    """Ids of new tasks, newest first."""
    made = []
    for _ in range(count):
        made.append(pending(account, **fields)["id"])
        time.sleep(0.002)  # ids of one millisecond may come in any order
    return made[::-1]


def pages(account, query):
    """Every page from the first to the last; a list that never ends is cut, so that its test fails instead."""
    found = [page(account.list(query))]
    while found[-1]["hasMore"] and len(found) < 10:
        found.append(page(account.list(f"{query}&cursor={found[-1]['nextCursor']}")))
    return found


def test_a_new_account_has_an_empty_list(account):
    body = page(account.list())
    assert (body["tasks"], body["hasMore"], body["nextCursor"]) == ([], False, None)


def test_the_newest_task_comes_first(account):
    made = some(account, 6)
    assert ids_of(page(account.list())) == made


def test_a_listed_task_equals_the_task_read_by_id(account):
    made = {state: make(account)["id"] for state, make in STATES.items()}
    listed = {one["id"]: one for one in page(account.list())["tasks"]}
    assert listed.keys() == set(made.values())
    for task_id, one in listed.items():
        assert bare(one) == bare(task(account.read_task(task_id)))


@pytest.mark.parametrize("status", STATUSES)
def test_a_filter_by_status_returns_exactly_those(account, status):
    made = [make(account)["id"] for make in STATES.values()]
    body = page(account.list(f"status={status}"))
    wanted = {task_id for task_id in made if task(account.read_task(task_id))["status"] == status}
    assert wanted
    assert set(ids_of(body)) == wanted


def test_a_filter_by_type_returns_exactly_those(account):
    pears, apples = some(account, 2, type="pear"), some(account, 3, type="apple")
    assert ids_of(page(account.list("type=apple"))) == apples
    assert ids_of(page(account.list("type=pear"))) == pears
    assert ids_of(page(account.list("type=plum"))) == []
    assert ids_of(page(account.list("type=appl"))) == []


def test_filters_work_together(account):
    some(account, 1, type="apple")
    wanted = held(account, type="apple")["id"]
    held(account, type="pear")
    assert ids_of(page(account.list("type=apple&status=claimed"))) == [wanted]


def test_the_list_advises_to_claim_when_something_is_pending_and_else_to_create(account):
    held(account)
    cancelled(account)
    assert advice(account.list()) == CREATE
    pending(account)
    assert advice(account.list()) == CLAIM
    assert advice(account.list("status=claimed")) == CREATE


def advice(answer):
    first = page(answer)["agent_contract"]["next_actions"][0]
    return first["action"], f"{first['method']} {first['endpoint']}"


# Pages.


@pytest.mark.parametrize(
    ("count", "limit", "sizes"), [(5, 2, [2, 2, 1]), (4, 2, [2, 2]), (3, 1, [1, 1, 1]), (3, 4, [3])]
)
def test_pages_contain_every_task_once_in_order(account, count, limit, sizes):
    made = some(account, count)
    found = pages(account, f"limit={limit}")
    assert [len(body["tasks"]) for body in found] == sizes
    assert [task_id for body in found for task_id in ids_of(body)] == made


def test_a_page_holds_fifty_by_default_and_a_hundred_at_most(account):
    made = set(some(account, 101))
    first = page(account.list())
    assert (len(first["tasks"]), first["hasMore"]) == (50, True)
    large = page(account.list("limit=100"))
    assert (len(large["tasks"]), large["hasMore"]) == (100, True)
    last = page(account.list(f"limit=100&cursor={large['nextCursor']}"))
    assert (len(last["tasks"]), last["hasMore"]) == (1, False)
    assert {*ids_of(large), *ids_of(last)} == made


def test_pages_are_stable_when_tasks_are_added(account):
    made = some(account, 4)
    first = page(account.list("limit=2"))
    newer = some(account, 3)
    second = page(account.list(f"limit=2&cursor={first['nextCursor']}"))
    assert ids_of(first) + ids_of(second) == made
    assert second["hasMore"] is False
    assert ids_of(page(account.list())) == newer + made


def test_pages_continue_when_tasks_no_longer_match(account):
    made = some(account, 5)
    first = page(account.list("limit=2&status=pending"))
    for task_id in made[1:3]:
        task(account.do("cancel", task_id))
    second = page(account.list(f"limit=5&status=pending&cursor={first['nextCursor']}"))
    assert ids_of(second) == made[3:]


def test_pages_respect_the_filter(account):
    apples = some(account, 3, type="apple")
    some(account, 2, type="pear")
    apples = some(account, 2, type="apple") + apples
    found = pages(account, "type=apple&limit=2")
    assert [task_id for body in found for task_id in ids_of(body)] == apples


def test_a_cursor_may_be_used_again(account):
    some(account, 3)
    first = page(account.list("limit=1"))
    again = [page(account.list(f"limit=1&cursor={first['nextCursor']}")) for _ in range(2)]
    assert again[0] == again[1]
