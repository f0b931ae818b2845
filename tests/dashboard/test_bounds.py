"""Limits of the dashboard: rate limits of the plan, rows read by a page, browser sessions per key."""

import re
import threading
from urllib.parse import urlencode

import pytest

from holdfast.core import task as tasks
from holdfast.core.browser_session import MAX_PER_KEY
from holdfast.core.task import Task
from holdfast.store.sql.reader import SqlReader
from holdfast.transport.dashboard import bulk, bulk_selection, cache
from holdfast.transport.dashboard.pages import dead_letters
from tests.dashboard.client import DashboardClient, text_of
from tests.dashboard.in_process import InProcessDashboard
from tests.support import ACCOUNT, START, STORES, make_store, put

pytest_plugins = ["tests.http.plan_servers"]

FORM = "application/x-www-form-urlencoded"
TYPES = 600
BACKGROUND = {"holdfast-sweep", "holdfast-cleanup", "holdfast-rollups", "holdfast-timer", "holdfast-listener",
              "holdfast-notifier"}  # fmt: skip
"""Threads whose queries belong to no page."""


@pytest.fixture(params=STORES)
def dashboard(request, tmp_path, new_postgres_database, clock):
    store = make_store(request.param, tmp_path, new_postgres_database, clock)
    dashboard = InProcessDashboard(store, clock)
    dashboard.open()
    yield dashboard
    dashboard.close()
    store.close()


def test_pages_and_forms_are_charged_like_the_api(server_with_plan):
    server = server_with_plan("sqlite", "rated")  # 40 reads and 8 changes an hour
    client = DashboardClient(server.port).sign_in(server.anyone.post("/v1/keys/register", {}).json["apiKey"])
    token = client.token()
    assert [client.post("/ui/tasks/none", act="requeue", token=token)[0] for _ in range(9)] == [404] * 8 + [429]
    status, headers, text = client.post("/ui/tasks/none", act="requeue", token=token)
    assert (status, headers["Retry-After"].isdigit(), "is reached" in text) == (429, True, True)
    assert [client.get("/ui/tasks")[0] for _ in range(40)] == [200] * 39 + [429]
    assert client.get("/", x_fragments="1")[0] == 429


def test_a_new_browser_session_ends_the_oldest_beyond_the_limit(dashboard):
    cookies = []
    for _ in range(MAX_PER_KEY + 1):
        cookies.append(dashboard.sign_in())
        dashboard.later(1)
    assert [dashboard.is_signed_in(cookie) for cookie in (cookies[0], cookies[1], cookies[-1])] == [False, True, True]


def test_invalid_input_is_refused_and_breaks_nothing(dashboard):
    cookie = dashboard.sign_in()
    for path in (
        "/ui/jobs/%00",
        "/ui/files/%00",
        "/ui/tasks/a%00",
        "/ui/agents/%00",
        "/ui/keys/%00",
        "/ui/webhooks/%00",
        "/ui/bulk/%00",
    ):
        assert dashboard.send("GET", path, cookie=cookie).status == 404, path
    token = re.search(rb'name="token" value="([0-9a-f]+)"', dashboard.send("GET", "/", cookie=cookie).raw)[1].decode()
    for days in ("²", "9" * 30, "٣"):
        fields = {"token": token, "act": "create", "name": "odd", "scope-read": "yes", "days": days}
        answer = dashboard.send("POST", "/ui/keys", urlencode(fields).encode(), content_type=FORM, cookie=cookie)
        assert (answer.status, b"shown only once" in answer.raw) == (200, True), days


@pytest.mark.parametrize("dashboard", ["sqlite", "postgres"], indirect=True)
def test_many_task_types_need_no_more_queries(dashboard, monkeypatch):
    """With very many types, the result is cached for two seconds, in which a busy machine may not get this far."""
    monkeypatch.setattr(cache, "TTL_SECONDS", 600.0)
    asked = []
    for reader in SqlReader.__subclasses__():
        monkeypatch.setattr(reader, "execute", counting(reader.execute, asked))
    cookie = dashboard.sign_in()
    costs = []
    for first, last in ((0, 3), (3, TYPES)):
        fill(dashboard.engine.store, first, last)
        asked.clear()
        answer = dashboard.send("GET", "/", cookie=cookie)
        costs.append(len(asked))
        assert f"<b>{last}</b> tasks pending" in answer.raw.decode()
    assert costs[1] <= costs[0], "the chart is not drawn again so soon"
    asked.clear()
    dashboard.send("GET", "/", cookie=cookie)
    assert len(asked) < costs[1]


def counting(look, asked):
    def counted(self, query, *arguments):
        if threading.current_thread().name not in BACKGROUND:
            asked.append(query)
        return look(self, query, *arguments)

    return counted


def fill(store, first, last):
    rows = [
        [Task(ACCOUNT, f"tsk_{state}{number:04d}", type=f"type{number}", state=state, created_at=START, **more)
         for number in range(first, last)]
        for state, more in (
            (tasks.PENDING, {"ready": True}), (tasks.CLAIMED, {"expires_at": START + 10**9, "proof": "x"}),
        )
    ]  # fmt: skip
    put(store, *rows[0], *rows[1], kind="created")


def test_a_search_in_very_many_tasks_stops_and_the_page_says_so(dashboard, monkeypatch):
    monkeypatch.setattr(bulk_selection, "SCAN_LIMIT", 500)
    monkeypatch.setattr(dead_letters, "SCAN_LIMIT", 500)
    letters = [
        Task(ACCOUNT, f"tsk_{number:04d}", type="t", state=tasks.DEAD, failure_reason="boom")
        for number in range(700)
    ]  # fmt: skip
    put(dashboard.engine.store, *letters, kind="created")
    cookie = dashboard.sign_in()
    page_text = text_of(dashboard.send("GET", "/ui/dead-letters", cookie=cookie).raw.decode())
    assert "500 dead letters" in page_text
    assert "only the newest 500 were searched" in page_text
    asked = "/ui/bulk?verb=resolve&state=dead_letter&reason=boom"
    page_text = text_of(dashboard.send("GET", asked, cookie=cookie).raw.decode())
    assert "500 tasks" in page_text
    assert "Only the newest 500 tasks with this state were searched" in page_text
    page_text = text_of(dashboard.send("GET", "/ui/bulk?verb=resolve&state=dead_letter", cookie=cookie).raw.decode())
    assert "700 tasks" in page_text
    assert "searched" not in page_text


def test_an_account_has_at_most_two_running_bulk_operations():
    """A third one is refused, whatever its filter."""
    running = [an_operation("mine"), an_operation("mine"), an_operation("another")]
    operations = bulk.BulkOperations(ctx=None, find_principal=None)
    operations._operations = {each.id: each for each in running}
    with pytest.raises(bulk.Conflict, match="your account has 2 bulk operations running"):
        operations.check("mine", bulk.DashboardFilter(type="else"))
    operations.check("another", bulk.DashboardFilter(type="else"))
    running[0].state = bulk.FINISHED
    operations.check("mine", bulk.DashboardFilter(type="else"))


def an_operation(account):
    browser_session = bulk.BrowserSession("id", "visit", account, "p", "hash", made_at=0, seen_at=0)
    return bulk.BulkOperation(
        bulk.new_id(), bulk.VERBS["cancel"], bulk.DashboardFilter(type=bulk.new_id()), browser_session, None, "me", 0, 1
    )
