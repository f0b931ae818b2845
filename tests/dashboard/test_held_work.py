"""Held work on the pages Now, Held work and Agents, at the size of a fleet."""

import re

import pytest

from holdfast.core import task as tasks
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from holdfast.transport.dashboard.labels import summarize
from holdfast.transport.dashboard.lists import held_work
from tests.dashboard.in_process import Visitor
from tests.support import ACCOUNT, ALICE, START, a_lease, a_lock, a_session, put

AGENTS = 20
TASKS = 30


def a_task(number, **more):
    return Task(
        ACCOUNT, f"tsk_{number:02d}", type="fix_issue", state=tasks.CLAIMED,
        payload=f'{{"issue":{number},"files":[1]}}',
        principal="p-other", worker=f"worker-{number % 10}", proof="x", claimed_at=START,
        expires_at=START + (100 + number) * SECOND, lease_duration=100 * SECOND, **more,
    )  # fmt: skip


@pytest.fixture
def fleet(dashboard):
    """50 holders: 10 workers with three tasks each, 4 named sessions, and owners of jobs with and without a session."""
    put(
        dashboard.engine.store,
        *(a_task(number) for number in range(TASKS)),
        *(a_session(f"s{number}", name=f"agent-{number}", ends=START + 500 * SECOND) for number in range(4)),
        a_session("s-unnamed", name=None, ends=START + 500 * SECOND),
        a_lease("bound", session="s0", ephemeral=True, owner="another name", ends=START + 300 * SECOND),
        a_lease("by-name", owner="agent-1", ends=START + 300 * SECOND),
        a_lease("by-name-of-another-key", owner="agent-2", principal="p-other", ends=START + 300 * SECOND),
        *(a_lease(f"job-{number}", owner=f"owner-{number}", ends=START + 300 * SECOND) for number in range(14)),
        a_lock("warm-up", owner=None, ends=START + 300 * SECOND),
        a_lease("__election/room", kind="election", owner="leader", ends=START + 300 * SECOND),
        Reservation(ACCOUNT, "r1", space="acme/shop", paths='["src/"]', owner="owner-0", ttl=10**9, arrived_at=START,
                    principal=ALICE.id, proof="x", token=7, claimed_at=START, expires_at=START + 10**9),
        Reservation(ACCOUNT, "r2", space="acme/shop", paths='["docs/"]', owner="agent-3", ttl=10**9, arrived_at=START,
                    principal=ALICE.id, proof="x", token=8, claimed_at=START, expires_at=START + 10**9),
        kind="created",
    )  # fmt: skip
    return Visitor(dashboard)


def test_every_owner_and_worker_is_an_agent_with_all_it_holds(fleet):
    rows = {row.split()[0]: row for row in fleet.rows("/ui/agents")}
    expected = {f"worker-{n}" for n in range(10)} | {f"agent-{n}" for n in range(4)} | {f"owner-{n}" for n in range(14)}
    assert set(rows) >= expected | {"s-unnamed", "unnamed"}
    assert "bound" in rows["agent-0"]
    assert "by-name" in rows["agent-1"]
    assert "docs/" in rows["agent-3"]
    assert ("job-0" in rows["owner-0"], "src/" in rows["owner-0"]) == (True, True)
    assert ("no session" in rows["worker-3"], rows["worker-3"].count("fix_issue")) == (True, 3)
    assert "another name" not in rows, "it is held for a session"
    assert "leader" not in rows, "elections are no work of an account"
    found = [row for row in fleet.rows("/ui/agents") if row.startswith("agent-2")]
    assert len(found) == 2, "the owner with the same name has another key"


def test_a_session_shows_what_its_key_holds_under_its_name(fleet):
    assert "by-name" in fleet.words("/ui/agents/s1")
    assert "by-name-of-another-key" not in fleet.words("/ui/agents/s2")


def test_agents_are_sorted_by_what_they_hold(fleet):
    assert fleet.rows("/ui/agents?sort=holds")[0].startswith("worker-")
    assert fleet.rows("/ui/agents")[0].startswith("unnamed")
    assert 'aria-sort="descending"' in fleet.get("/ui/agents?sort=holds")
    assert 'aria-sort="ascending"' in fleet.get("/ui/agents?sort=-holds")


def test_the_first_page_is_short_and_its_counts_are_exact(fleet):
    page = fleet.words("/")
    assert "50 held" in page
    assert "31 agents" in page
    assert "All 50" in page
    assert page.index("Throughput") < page.index("Queues") < page.index("Held work") < page.index("Recent events")
    rows = fleet.rows("/")
    assert len(rows) == 10
    assert all("issue: " in row and "tsk_" in row for row in rows if "fix_issue" in row)
    assert 'href="/ui/held"' in fleet.get("/")


def test_all_held_work_is_one_click_away(fleet):
    assert len(fleet.rows("/ui/held")) == 50
    of_one = fleet.rows("/ui/held?owner=worker-3")
    assert [re.search(r"tsk_\d\d", row)[0] for row in of_one] == ["tsk_03", "tsk_13", "tsk_23"]
    assert "tsk_23" in fleet.rows("/ui/held?owner=worker-3&sort=-left")[0]
    assert len(fleet.rows("/ui/held?kind=reservation")) == 2


def test_more_than_is_read_is_said_and_still_counted(fleet, monkeypatch):
    monkeypatch.setattr(held_work, "MAX_ROWS", 7)
    assert "50 held" in fleet.words("/")
    assert "of each kind are listed here" in fleet.words("/ui/held")


def test_long_lists_have_pages(fleet, monkeypatch):
    monkeypatch.setattr("holdfast.transport.dashboard.pages.held.PAGE_SIZE", 20)
    pages = [fleet.rows(f"/ui/held?sort=name&page={number}") for number in (1, 2, 3)]
    assert [len(rows) for rows in pages] == [20, 20, 10]
    assert len({row for rows in pages for row in rows}) == 50
    assert "41 to 50 of 50" in fleet.words("/ui/held?sort=name&page=3")
    assert fleet.rows("/ui/held?sort=name&page=99") == pages[2]
    assert fleet.rows("/ui/held?sort=name&page=²") == pages[0]


def test_times_are_relative_in_the_text_and_absolute_on_hover(fleet):
    for path in (
        "/",
        "/ui/held",
        "/ui/agents",
        "/ui/jobs",
        "/ui/jobs/bound",
        "/ui/tasks",
        "/ui/tasks/tsk_01",
        "/ui/keys",
    ):
        found = re.findall(r"<[^>]*data-(?:ago|count)=[^>]*>", fleet.get(path))
        assert found, path
        assert [tag for tag in found if not re.search(r'title="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d', tag)] == [], path


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"page":7,"repository":"acme/shop","files":[1,2,3],"more":{"a":1},"ok":true,"none":null}',
         "page: 7, repository: acme/shop, files: [3], more: {1}, ok: true, none: null"),
        ("{}", ""),
        ("[1,2]", "[2]"),
        ('"text"', "text"),
        ("not json", "not json"),
        ('{"text":"' + "x" * 500 + '"}', "text: " + "x" * 39 + "…"),
        ('{"a b\\nc":"d\\n\\te"}', "a b c: d e"),
        ("[" * 100_000, "[" * 99 + "…"),
    ],
)  # fmt: skip
def test_a_document_is_summarized_in_a_few_words(document, words):
    assert summarize(document) == words


def test_a_summary_has_a_bound():
    assert len(summarize(str({f"field{n}": n for n in range(1_000)}).replace("'", '"'))) == 100
