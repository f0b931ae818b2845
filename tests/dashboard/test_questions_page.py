"""Questions page: the inbox, its count in the navigation, and answering with and without the scope."""

import re
from urllib.parse import urlencode

import pytest

from holdfast.core.question import Question
from holdfast.core.task import Task
from tests.dashboard.client import FORM, text_of
from tests.dashboard.in_process import InProcessDashboard
from tests.support import every, run
from tests.task_commands import approval, ask, create, take


@pytest.fixture
def dashboard():
    dashboard = InProcessDashboard()
    dashboard.open()
    yield dashboard
    dashboard.close()


def store_of(dashboard):
    return dashboard.engine.store


def shown(dashboard, path, cookie):
    answer = dashboard.send("GET", path, cookie=cookie)
    assert answer.status == 200, answer.raw
    return answer.raw.decode()


def post(dashboard, path, cookie, page, **fields):
    token = re.search(r'name="token" value="([0-9a-f]+)"', page)[1]
    body = urlencode({"token": token, "act": "answer", **fields}).encode()
    return dashboard.send("POST", path, body, cookie=cookie, content_type=FORM)


def asked(dashboard, **fields):
    store = store_of(dashboard)
    run(store, create("t1", payload='{"part":17}'))
    run(store, take("work"))
    return run(store, ask(**fields)).task.question


def test_the_inbox_lists_open_questions_and_the_navigation_counts_them(dashboard):
    cookie = dashboard.sign_in()
    page = shown(dashboard, "/ui/questions", cookie)
    assert "No question is open" in text_of(page)
    assert 'class="count"' not in page
    asked(dashboard, text="Which <b>supplier</b>?", choices=("Huber", "Miller"))
    page = shown(dashboard, "/ui/questions", cookie)
    assert "Which <b>supplier</b>?" in text_of(page)
    assert "Huber, Miller" in text_of(page)
    assert re.search(r'id="question-count"[^>]*class="count"[^>]*>1<', page)
    live = dashboard.send("GET", "/", cookie=cookie, x_fragments="1").raw.decode()
    assert re.search(r'id="question-count"[^>]*>1<', live)


def test_a_person_answers_in_the_browser(dashboard):
    cookie, question = dashboard.sign_in(), asked(dashboard, choices=("Huber", "Miller"))
    path = f"/ui/questions/{question}"
    page = shown(dashboard, path, cookie)
    assert '"part": 17' in text_of(page), "what it is about"
    refused = post(dashboard, path, cookie, page, answer="nobody")
    assert (refused.status, "must be one of" in refused.raw.decode()) == (400, True)
    done = post(dashboard, path, cookie, page, answer="Miller", reason="cheaper")
    assert (done.status, done.headers["location"]) == (303, f"{path}?done=answered")
    (row,) = every(store_of(dashboard), Question)
    assert (row.answer, row.reason, row.answered_by) == ("Miller", "cheaper", "root")
    assert every(store_of(dashboard), Task)[0].ready
    page = shown(dashboard, f"{path}?done=answered", cookie)
    assert "Answered." in text_of(page)
    assert 'name="answer"' not in page


def test_a_question_without_choices_takes_any_text_and_needs_one(dashboard):
    cookie, question = dashboard.sign_in(), asked(dashboard)
    path = f"/ui/questions/{question}"
    page = shown(dashboard, path, cookie)
    assert "<textarea" in page
    assert post(dashboard, path, cookie, page, answer="  ").status == 400
    assert post(dashboard, path, cookie, page, answer="the second one").status == 303


def test_the_pages_of_a_task_and_of_its_question_link_to_each_other(dashboard):
    cookie = dashboard.sign_in()
    question = run(store_of(dashboard), create("t1", approval=approval("Delete it?"))).task.question
    assert f'href="/ui/questions/{question}"' in shown(dashboard, "/ui/tasks/t1", cookie)
    page = shown(dashboard, f"/ui/questions/{question}", cookie)
    assert 'href="/ui/tasks/t1"' in page
    assert "Delete it?" in text_of(page)
    assert dashboard.send("GET", "/ui/questions/none-1", cookie=cookie).status == 404


def test_a_key_without_the_scope_sees_no_form_and_is_refused(dashboard):
    question = asked(dashboard)
    root = {"authorization": f"Bearer {dashboard.ctx.settings.root_key}", "content_type": "application/json"}
    made = dashboard.send("POST", "/v1/keys", b'{"name":"worker","scopes":["tasks"]}', accept="*/*", **root)
    cookie = dashboard.send_key(made.json["apiKey"]).headers["set-cookie"].split(";")[0]
    path = f"/ui/questions/{question}"
    page = shown(dashboard, path, cookie)
    assert 'name="answer"' not in page
    assert "scope answer" in " ".join(text_of(page).split())
    assert post(dashboard, path, cookie, page, answer="yes").status == 403
    assert every(store_of(dashboard), Question)[0].state == "open"
