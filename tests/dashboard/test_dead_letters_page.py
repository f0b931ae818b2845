"""Dead letters page and the navigation's count of them, in process."""

import re

import pytest

from holdfast.core import task as tasks
from holdfast.core.task import Task
from tests.dashboard.in_process import Visitor
from tests.support import ACCOUNT, START, put


@pytest.fixture
def visitor(dashboard):
    letters = [
        Task(ACCOUNT, f"tsk_{number}", type=f"type-{number % 2}", state=tasks.DEAD, dead_cause=tasks.EXHAUSTED,
             failure_reason=f"row {number} is odd", resolved_at=START if number == 9 else None)
        for number in range(10)
    ]  # fmt: skip
    put(dashboard.engine.store, *letters, kind="created")
    return Visitor(dashboard)


def shown_count(visitor, **headers):
    page = visitor.dashboard.send("GET", "/ui/jobs", cookie=visitor.cookie, **headers).raw.decode()
    return re.search(r'id="dead-letter-count"[^>]*>([^<]*)<', page)[1]


def test_causes_are_grouped_over_types_and_one_action_is_for_all(visitor):
    (row,) = visitor.rows("/ui/dead-letters")
    assert "row <n> is odd" in row
    assert ("type-0 5" in row, "type-1 4" in row) == (True, True)
    page = visitor.get("/ui/dead-letters")
    assert 'href="/ui/bulk?state=dead_letter&amp;open=yes&amp;verb=requeue">Requeue all…' in page
    assert 'href="/ui/bulk?state=dead_letter&amp;open=yes&amp;verb=resolve">Resolve all…' in page
    assert "9 tasks" in visitor.words("/ui/bulk?state=dead_letter&open=yes&verb=requeue")


def test_the_navigation_counts_open_dead_letters(visitor):
    assert shown_count(visitor) == "9"
    assert visitor.post("/ui/tasks/tsk_1", act="resolve").endswith("?done=resolved")
    assert shown_count(visitor) == "8"
    assert shown_count(visitor, x_fragments="1") == "8", "an open page updates it"


def test_a_key_without_tasks_sees_no_count(visitor, dashboard):
    made = visitor.post("/ui/keys", status=200, act="create", name="jobs only", **{"scope-jobs": "yes"})
    key = re.search(r'id="secret">([^<]+)<', made)[1]
    cookie = dashboard.send_key(key).headers["set-cookie"].split(";")[0]
    assert b"dead-letter-count" not in dashboard.send("GET", "/", cookie=cookie).raw
