"""Pages about tasks, dead letters, events and keys, and a bulk operation, on every store."""

import re
from urllib.parse import urlencode

import pytest

from holdfast.core import task as tasks
from holdfast.core.task import Task
from holdfast.core.webhooks.webhook import Webhook
from tests.dashboard.client import text_of
from tests.dashboard.in_process import InProcessDashboard
from tests.support import ACCOUNT, START, STORES, make_store, put, wait_until

DEAD = 450
SHOWN = {
    "/ui/tasks": ("pending 1", f"dead letter {DEAD}", "waiting-type"),
    "/ui/tasks?tag=blue": ("tsk_waiting",),
    "/ui/tasks?key=unique": ("tsk_waiting",),
    "/ui/tasks/tsk_waiting": ("waiting-type", '"page": 7', "claim_task"),
    "/ui/dead-letters": ("row <n> is odd", "dead-type", str(DEAD)),
    "/ui/events?subject=task:tsk_w": ("created", "tsk_waiting"),
    "/ui/events/1": ("created", "webhook"),
    "/ui/webhooks": ("https://hooks.example/here", "active"),
    "/ui/webhooks/whk_1": ("0 pending, 0 delivered, 0 dead",),
    "/ui/keys": ("tasks created this month", "root"),
}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(params=STORES)
def dashboard(request, tmp_path, new_postgres_database, clock):
    store = make_store(request.param, tmp_path, new_postgres_database, clock)
    waiting = Task(
        ACCOUNT, "tsk_waiting", type="waiting-type", created_at=START, ready=True, tag="blue", unique_key="unique",
        payload='{"page":7}',
    )  # fmt: skip
    letters = [
        Task(ACCOUNT, f"tsk_dead{number:04d}", type="dead-type", created_at=START, state=tasks.DEAD,
             dead_cause=tasks.EXHAUSTED, failure_reason=f"row {number} is odd")
        for number in range(DEAD)
    ]  # fmt: skip
    hook = Webhook(ACCOUNT, "whk_1", url="https://hooks.example/here", secret="whsec_x", created_at=START)
    put(store, hook, waiting, *letters, kind="created")
    dashboard = InProcessDashboard(store, clock)
    dashboard.open()
    yield dashboard
    dashboard.close()
    store.close()


def words_of(answer):
    return " ".join(text_of(answer.raw.decode()).split())


def test_every_task_page_shows_the_stored_data(dashboard):
    cookie = dashboard.sign_in()
    for path, words in SHOWN.items():
        answer = dashboard.send("GET", path, cookie=cookie)
        assert answer.status == 200, path
        for word in words:
            assert word in words_of(answer), (path, word, words_of(answer)[:2000])


def test_a_bulk_operation_changes_the_counted_tasks(dashboard):
    cookie = dashboard.sign_in()
    asked = {"verb": "requeue", "state": "dead_letter", "type": "dead-type", "reason": "row <n> is odd"}
    page = dashboard.send("GET", f"/ui/bulk?{urlencode(asked)}", cookie=cookie).raw.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)) | asked
    assert fields["count"] == str(DEAD)
    dashboard.later(1)
    body = urlencode(fields | {"act": "start", "typed": fields["count"]}).encode()
    begun = dashboard.send("POST", "/ui/bulk", body, cookie=cookie, content_type=FORM)
    assert begun.status == 303, words_of(begun)
    address = begun.headers["location"]
    wait_until(lambda: "finished" in words_of(dashboard.send("GET", address, cookie=cookie)), 60)
    assert f"{DEAD} requeued of {DEAD}" in words_of(dashboard.send("GET", address, cookie=cookie))
    with dashboard.engine.store.read() as reader:
        counts = reader.task_counts(ACCOUNT)
    assert ("dead-type", "pending", DEAD) in counts
    assert not [state for kind, state, many in counts if kind == "dead-type" and state != "pending"]
