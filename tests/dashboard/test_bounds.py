"""What a visitor costs is bounded: by the plan, by what is looked at, and by how many visits a key has."""

import re
from urllib.parse import urlencode

import pytest

from holdfast.core import task as tasks
from holdfast.core.browser_session import MAX_PER_KEY
from holdfast.core.task import Task
from holdfast.store.sql_reader import SqlReader
from holdfast.transport.dashboard import bulk
from holdfast.transport.dashboard.pages import dead_letters
from tests.dashboard.house import DashboardHouse
from tests.dashboard.visitor import Visitor, text_of
from tests.support import ACCOUNT, START, STORES, make_store, put

pytest_plugins = ["tests.http.planned"]

FORM = "application/x-www-form-urlencoded"
TYPES = 600


@pytest.fixture(params=STORES)
def house(request, tmp_path, new_postgres_database, clock):
    store = make_store(request.param, tmp_path, new_postgres_database, clock)
    house = DashboardHouse(store, clock)
    house.thread.submit(lambda: house.runner.run(opened(house.ctx))).result()
    yield house
    house.close()
    store.close()


async def opened(ctx):
    """What is done, and not only looked at, needs a loop to go on in."""
    ctx.open()


def test_pages_and_forms_are_charged_like_the_api(planned):
    server = planned("sqlite", "rated")  # 40 reads and 8 changes an hour
    visitor = Visitor(server.port).sign_in(server.anyone.post("/v1/keys/register", {}).json["apiKey"])
    token = visitor.token()
    assert [visitor.post("/ui/tasks/none", act="requeue", token=token)[0] for _ in range(9)] == [404] * 8 + [429]
    status, headers, text = visitor.post("/ui/tasks/none", act="requeue", token=token)
    assert (status, headers["Retry-After"].isdigit(), "are spent" in text) == (429, True, True)
    assert [visitor.get("/ui/tasks")[0] for _ in range(40)] == [200] * 39 + [429]
    assert visitor.get("/", x_fragments="1")[0] == 429


def test_a_key_has_so_many_visits_and_the_oldest_go(house):
    cookies = []
    for _ in range(MAX_PER_KEY + 1):
        cookies.append(house.sign_in())
        house.later(1)
    assert [house.let_in(cookie) for cookie in (cookies[0], cookies[1], cookies[-1])] == [False, True, True]


def test_odd_input_is_refused_and_breaks_nothing(house):
    cookie = house.sign_in()
    for path in (
        "/ui/jobs/%00",
        "/ui/tasks/a%00",
        "/ui/agents/%00",
        "/ui/keys/%00",
        "/ui/webhooks/%00",
        "/ui/bulk/%00",
    ):
        assert house.send("GET", path, cookie=cookie).status == 404, path
    token = re.search(rb'name="token" value="([0-9a-f]+)"', house.send("GET", "/", cookie=cookie).raw)[1].decode()
    for days in ("²", "9" * 30, "٣"):
        fields = {"token": token, "act": "create", "name": "odd", "scope-read": "yes", "days": days}
        answer = house.send("POST", "/ui/keys", urlencode(fields).encode(), content_type=FORM, cookie=cookie)
        assert (answer.status, b"shown this once" in answer.raw) == (200, True), days


@pytest.mark.parametrize("house", ["sqlite", "postgres"], indirect=True)
def test_many_types_of_tasks_cost_no_more_questions(house, monkeypatch):
    """And with very many, those who look within two seconds ask them once."""
    asked = []
    for reader in SqlReader.__subclasses__():
        monkeypatch.setattr(reader, "look", counting(reader.look, asked))
    cookie = house.sign_in()
    costs = []
    for first, last in ((0, 3), (3, TYPES)):
        fill(house.engine.store, first, last)
        asked.clear()
        answer = house.send("GET", "/", cookie=cookie)
        costs.append(len(asked))
        assert f"<b>{last}</b> tasks to do" in answer.raw.decode()
    assert costs[1] <= costs[0], "the chart is not drawn again so soon"
    asked.clear()
    house.send("GET", "/", cookie=cookie)
    assert len(asked) < costs[1]


def counting(look, asked):
    def counted(self, query, *arguments):
        asked.append(query)
        return look(self, query, *arguments)

    return counted


def fill(store, first, last):
    rows = [
        [Task(ACCOUNT, f"tsk_{state}{number:04d}", type=f"type{number}", state=state, created_at=START, **more)
         for number in range(first, last)]
        for state, more in ((tasks.PENDING, {"ready": True}), (tasks.CLAIMED, {"expires_at": START + 10**9}))
    ]  # fmt: skip
    put(store, *rows[0], *rows[1], kind="created")


def test_a_look_at_very_many_tasks_ends_and_says_so(house, monkeypatch):
    monkeypatch.setattr(bulk, "LOOKED_AT", 500)
    monkeypatch.setattr("holdfast.transport.dashboard.pages.bulk.LOOKED_AT", 500)
    monkeypatch.setattr(dead_letters, "LOOKED_AT", 500)
    letters = [
        Task(ACCOUNT, f"tsk_{number:04d}", type="t", state=tasks.DEAD, failure_reason="boom")
        for number in range(700)
    ]  # fmt: skip
    put(house.engine.store, *letters, kind="created")
    cookie = house.sign_in()
    told = text_of(house.send("GET", "/ui/dead-letters", cookie=cookie).raw.decode())
    assert "500 dead letters" in told
    assert "only the newest 500 were looked at" in told
    asked = "/ui/bulk?verb=resolve&state=dead_letter&reason=boom"
    told = text_of(house.send("GET", asked, cookie=cookie).raw.decode())
    assert "500 tasks" in told
    assert "Only the newest 500 tasks of this state were looked at" in told
    told = text_of(house.send("GET", "/ui/bulk?verb=resolve&state=dead_letter", cookie=cookie).raw.decode())
    assert "700 tasks" in told
    assert "looked at" not in told


def test_an_account_has_two_bulks_under_way_at_most():
    """They wait for nobody here: what is refused is the third, whatever it is about."""
    running = [a_bulk("mine"), a_bulk("mine"), a_bulk("another")]
    bulks = bulk.Bulks(ctx=None, bearer=None)
    bulks._known = {each.id: each for each in running}
    with pytest.raises(bulk.Conflict, match="2 are under way in your account"):
        bulks.check("mine", bulk.Wanted(type="else"))
    bulks.check("another", bulk.Wanted(type="else"))
    running[0].state = bulk.FINISHED
    bulks.check("mine", bulk.Wanted(type="else"))


def a_bulk(account):
    browser_session = bulk.BrowserSession("id", "visit", account, "p", "hash", made_at=0, seen_at=0)
    return bulk.Bulk(
        bulk.new_id(), bulk.VERBS["cancel"], bulk.Wanted(type=bulk.new_id()), browser_session, None, "me", 0, 1
    )
