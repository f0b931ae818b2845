"""Queues page: pausing, draining and limiting a queue, and work that no live worker can take."""

import re
from urllib.parse import urlencode

import pytest

from holdfast.core.row import SECOND
from holdfast.core.task.queue import Queue
from holdfast.engine.verbs.tasks.claiming import Empty
from tests.dashboard.client import FORM, text_of
from tests.dashboard.in_process import InProcessDashboard
from tests.support import a_session, every, put, run
from tests.task_commands import create, take

WITHOUT_WORKER = "Work that no live worker can take"


@pytest.fixture
def dashboard():
    dashboard = InProcessDashboard()
    dashboard.open()
    yield dashboard
    dashboard.close()


def shown(dashboard, path, cookie):
    answer = dashboard.send("GET", path, cookie=cookie)
    assert answer.status == 200, answer.raw
    return answer.raw.decode()


def post(dashboard, path, cookie, **fields):
    token = re.search(r'name="token" value="([0-9a-f]+)"', shown(dashboard, path, cookie))[1]
    body = urlencode({"token": token, **fields}).encode()
    return dashboard.send("POST", path, body, cookie=cookie, content_type=FORM)


def test_a_queue_is_paused_drained_and_resumed_and_other_pages_say_so(dashboard):
    store, cookie, path = dashboard.engine.store, dashboard.sign_in(), "/ui/queues/work"
    for task in ("t1", "t2"):
        run(store, create(task))
    run(store, take("work"))
    assert ">paused</span>" not in shown(dashboard, "/", cookie)
    done = post(dashboard, path, cookie, act="drain")
    assert (done.status, done.headers["location"]) == (303, f"{path}?done=draining")
    assert "1 still run" in text_of(shown(dashboard, path, cookie))
    assert isinstance(run(store, take("work")), Empty)
    for page in ("/", "/ui/tasks", "/ui/queues"):
        main = shown(dashboard, page, cookie)
        assert ">paused</span>" in main, page
        assert 'href="/ui/queues/work"' in main, page
    assert '<a href="/ui/queues/work">room in its queue</a>' in shown(dashboard, "/ui/tasks/t2", cookie)
    assert post(dashboard, path, cookie, act="resume").headers["location"] == f"{path}?done=resumed"
    assert "room in its queue" not in shown(dashboard, "/ui/tasks/t2", cookie)
    assert len(run(store, take("work")).taken) == 1
    assert post(dashboard, path, cookie, act="pause").status == 303


def test_a_queue_is_limited_and_a_wrong_limit_changes_nothing(dashboard):
    cookie, path = dashboard.sign_in(), "/ui/queues/work"
    assert post(dashboard, path, cookie, act="limit", max_running="3").status == 303
    for wrong in ("x", "-1", "1000001"):
        refused = post(dashboard, path, cookie, act="limit", max_running=wrong)
        assert (refused.status, "the limit must be a whole number" in refused.raw.decode()) == (400, True)
    (queue,) = every(dashboard.engine.store, Queue)
    assert queue.max_running == 3
    assert "0 of at most 3" in text_of(shown(dashboard, path, cookie))
    assert post(dashboard, path, cookie, act="limit", max_running="3", max_running_per_key="2").status == 303
    wrong = post(dashboard, path, cookie, act="limit", max_running="1", max_running_per_key="x")
    assert wrong.status == 400
    (queue,) = every(dashboard.engine.store, Queue)
    assert (queue.max_running, queue.max_running_per_key) == (3, 2)
    assert "<dd>at most 2</dd>" in shown(dashboard, path, cookie)
    assert post(dashboard, path, cookie, act="limit", max_running="").status == 303
    assert every(dashboard.engine.store, Queue)[0].max_running is None


def test_a_form_without_its_token_and_a_queue_that_cannot_exist_are_refused(dashboard):
    cookie = dashboard.sign_in()
    body = urlencode({"act": "pause"}).encode()
    assert dashboard.send("POST", "/ui/queues/work", body, cookie=cookie, content_type=FORM).status == 403
    assert dashboard.send("GET", "/ui/queues/a%20b", cookie=cookie).status == 404
    assert every(dashboard.engine.store, Queue) == []


def test_work_that_no_live_worker_can_take_is_shown_until_a_session_can(dashboard):
    store, cookie = dashboard.engine.store, dashboard.sign_in()
    run(store, create("t1", requires="gpu,repo:shop"))
    page = shown(dashboard, "/ui/queues", cookie)
    assert WITHOUT_WORKER not in page, "a worker that asks now and then had no time yet"
    dashboard.later(61)
    assert WITHOUT_WORKER in shown(dashboard, "/ui/queues", cookie)
    assert "gpu" in text_of(shown(dashboard, "/ui/queues/work", cookie))
    assert "1 kind of work that no live worker can take" in text_of(shown(dashboard, "/", cookie))
    put(store, a_session("s1", capabilities="gpu,repo:shop", ends=dashboard.clock.now + 60 * SECOND))
    assert WITHOUT_WORKER not in shown(dashboard, "/ui/queues", cookie)
