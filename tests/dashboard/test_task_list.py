"""List of tasks: search, phases, days, sorting, selected rows, and a task created on the page."""

import re

import msgspec
import pytest

from holdfast.core import task as tasks
from holdfast.core.row import SECOND
from holdfast.core.task import Attempt, Task
from holdfast.transport.dashboard.pages import tasks as page
from tests.dashboard.in_process import Visitor, words_of
from tests.support import ACCOUNT, START, put, wait_until

DAY = 24 * 3600 * SECOND
FAILED = msgspec.json.encode(Attempt("w", tasks.FAILED, START, 1, "proof")).decode()
ROWS = (
    Task(ACCOUNT, "tsk_1", type="translate_page", created_at=START - 3 * DAY, ready=True, priority=5, tag="acme/shop",
         payload='{"page":7}'),
    Task(ACCOUNT, "tsk_2", type="translate_page", created_at=START - 2 * DAY, scheduled_at=START + DAY, priority=90),
    Task(ACCOUNT, "tsk_3", type="fetch_source", created_at=START - DAY, scheduled_at=START + DAY, attempt_count=1,
         ended=FAILED, priority=50),
    Task(ACCOUNT, "tsk_4", type="fetch_source", created_at=START, state=tasks.DEAD, dead_cause=tasks.EXHAUSTED,
         unique_key="Invoice-88"),
)  # fmt: skip


@pytest.fixture
def visitor(dashboard):
    put(dashboard.engine.store, *ROWS, kind="created")
    return Visitor(dashboard)


def ids(visitor, query):
    return re.findall(r'href="/ui/tasks/(tsk_\w+)"', visitor.get(f"/ui/tasks?{query}"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "4321"),
        ("q=PAGE", "21"),
        ("q=shop", "1"),
        ("q=invoice", "4"),
        ("q=sk_3", "3"),
        ("q=none", ""),
        ("phase=waiting", "1"),
        ("phase=scheduled", "2"),
        ("phase=retrying", "3"),
        ("phase=blocked", ""),
        ("phase=retrying&state=dead_letter", "4"),
        ("status=dead_letter", "4"),
        ("since=2023-11-13", "43"),
        ("until=2023-11-12", "21"),
        ("since=2023-11-12&until=2023-11-12", "2"),
        ("since=tomorrow&until=2023-99-99", "4321"),
        ("sort=priority", "2314"),
        ("sort=-priority", "4132"),
        ("sort=type", "3412"),
        ("sort=-created", "1234"),
        ("sort=nonsense", "4321"),
    ],
)
def test_tasks_are_found_and_sorted(visitor, query, found):
    assert "".join(each.removeprefix("tsk_") for each in ids(visitor, query)) == found


def test_rows_show_payload_priority_and_the_words_for_pending_tasks(visitor):
    rows = {re.search(r"tsk_\d", row)[0]: row for row in visitor.rows("/ui/tasks")}
    assert "page: 7" in rows["tsk_1"]
    for task, word in (("tsk_1", "waiting"), ("tsk_2", "scheduled"), ("tsk_3", "retrying"), ("tsk_4", "dead letter")):
        assert word in rows[task]
        assert word in visitor.words(f"/ui/tasks/{task}")
    assert " 90 " in rows["tsk_2"]


def test_a_whole_id_is_found_however_old_its_task_is(visitor, monkeypatch):
    monkeypatch.setattr(page, "SCAN_LIMIT", 0)
    assert ids(visitor, "q=tsk_1") == ["tsk_1"]


def test_only_the_newest_tasks_are_sorted_and_the_page_says_so(visitor, monkeypatch):
    monkeypatch.setattr(page, "SCAN_PAGE", 1)
    monkeypatch.setattr(page, "MAX_SORTED", 2)
    assert ids(visitor, "sort=priority") == ["tsk_3", "tsk_4"]
    assert "Only the newest 2 tasks that match are sorted" in visitor.words("/ui/tasks?sort=priority")


def test_selected_rows_are_acted_on_after_a_confirmation(visitor, dashboard):
    assert "select at least one task" in visitor.words("/ui/bulk?selection=yes&verb=cancel", status=400)
    confirm = visitor.get("/ui/bulk?selection=yes&verb=cancel&id=tsk_1&id=tsk_3&id=tsk_4&id=none")
    assert "Cancel: 2 tasks" in words_of(confirm), "a dead letter cannot be cancelled"
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', confirm))
    fields.pop("token", None)
    dashboard.later(1)
    address = visitor.post("/ui/bulk", act="start", **fields)
    wait_until(lambda: "finished" in visitor.words(address), 60)
    assert ids(visitor, "state=cancelled") == ["tsk_3", "tsk_1"]
    assert ids(visitor, "state=pending") == ["tsk_2"]


def test_a_wrong_number_keeps_the_confirmation(visitor):
    fields = {"verb": "cancel", "state": "pending", "count": "3", "moment": str(START), "typed": "4"}
    answer = visitor.post("/ui/bulk", status=400, act="start", **fields)
    assert "type the number of tasks that was shown" in words_of(answer)
    assert "Cancel: 3 tasks" in words_of(answer)


def test_a_task_is_created_on_the_page(visitor, dashboard):
    fields = {"type": "process", "payload": '{"page": 1}', "priority": "7", "max_attempts": "2", "tag": "x", "key": "k"}
    address = visitor.post("/ui/tasks", act="create", **fields)
    assert address.endswith("?done=created")
    assert "The task is in its queue" in visitor.words(address)
    with dashboard.engine.store.read() as reader:
        task = reader.row(Task, ACCOUNT, re.search(r"tsk_\w+", address)[0])
    assert (task.type, task.payload, task.priority, task.max_attempts, task.tag, task.unique_key) == (
        "process", '{"page":1}', 7, 2, "x", "k",
    )  # fmt: skip
    assert visitor.post("/ui/tasks", act="create", **fields).endswith("?done=exists")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"type": "bad type", "payload": "{}"}, "`type` must be"),
        ({"type": "t", "payload": "{"}, "`payload` must be a JSON object"),
        ({"type": "t", "payload": "[1]"}, "`payload` must be a JSON object"),
        ({"type": "t", "payload": "{}", "priority": "many"}, "must be whole numbers"),
        ({"type": "t", "payload": "{}", "priority": "101"}, "`priority` must be"),
    ],
)
def test_a_refused_task_leaves_the_form_as_it_was_filled_in(visitor, fields, reason):
    answer = visitor.post("/ui/tasks", status=400, act="create", tag="kept", **fields)
    assert reason in words_of(answer)
    assert 'value="kept"' in answer
    assert "translate_page" in words_of(answer), "it is the same page"
