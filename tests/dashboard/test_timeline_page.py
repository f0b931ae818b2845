"""Timeline page: one row per agent, from events and from what is held now."""

import re

import pytest

from holdfast.core.holdings.spans import Span
from holdfast.core.row import SECOND
from holdfast.transport.dashboard import agent_timeline
from holdfast.transport.dashboard.ownership_timeline import MAX_LANES, lanes_of, place, timeline
from holdfast.transport.dashboard.pages import timeline as page
from tests.dashboard.in_process import Visitor
from tests.support import START, a_lease, a_session, put

HOUR = 3600


def a_span(owner="ada", since=0, until=10, how="released", **more):
    fields = {"noun": "lease", "id": "job", "kind": "job"} | more
    return Span(owner=owner, since=None if since is None else START + since * SECOND, until=START + until * SECOND,
                how=how, **fields)  # fmt: skip


def test_bars_are_placed_on_the_scale_and_cut_at_its_ends():
    ends = (START, START + 100 * SECOND)
    assert (place(a_span(since=25, until=50), *ends).x, place(a_span(since=25, until=50), *ends).width) == (150, 150)
    assert (place(a_span(since=-50, until=50), *ends).x, place(a_span(since=-50, until=50), *ends).width) == (0, 300)
    assert (place(a_span(since=None, until=50), *ends).x, place(a_span(since=None, until=50), *ends).width) == (0, 300)
    assert place(a_span(since=100, until=100), *ends).x == 598, "a very short one at the end is still visible"


def test_bars_that_overlap_are_in_lanes():
    found = lanes_of([a_span(since=0, until=10), a_span(since=5, until=20), a_span(since=10, until=12)])
    assert [lane for _, lane in found] == [0, 1, 0]
    assert max(lane for _, lane in lanes_of(a_span(since=n, until=99) for n in range(20))) == MAX_LANES - 1


def test_the_tooltip_has_what_how_long_and_absolute_times():
    bar = place(a_span(since=0, until=70, how="session_ended"), START, START + 100 * SECOND, title="job deploy")
    assert re.fullmatch(r"job deploy: session ended after 1 min 10 s, from \S+Z to \S+Z", bar.description)
    assert "held for 10 s, since" in place(a_span(how="held"), START, START + 9).description
    assert "before the first event" in place(a_span(since=None), START, START + 9).description


def test_the_owners_of_one_thing_are_rows_newest_first():
    rows = timeline([a_span("ada", 0, 10), a_span("bob", 10, 20), a_span("ada", 20, 30, "held")])
    assert [(row.owner, [bar.mark for bar in row.bars]) for row in rows] == [
        ("ada", ["held", "released"]),
        ("bob", ["released"]),
    ]
    assert timeline([]) == []


def test_what_was_held_for_a_session_is_in_the_row_of_its_name():
    spans = [a_span("ada"), a_span("label", session="s1"), a_span("other", session="s2"), a_span(None, session="gone")]
    live = [a_session("s1", name="ada"), a_session("s2", name=None)]
    found = agent_timeline.histories(spans, {"gone": "bob"}, live, START)
    assert [(each.agent.name, len(each.spans)) for each in found] == [("ada", 2), ("bob", 1), ("s2", 1)]
    assert found[0].agent.session.id == "s1"
    assert agent_timeline.histories(spans, {}, live, START + 20 * SECOND) == [], "all of it was before"


@pytest.fixture
def visitor(dashboard):
    return Visitor(dashboard)


def claim(dashboard, name, owner, **more):
    now = dashboard.clock.now
    lease = a_lease(name, owner=owner, ends=now + 90 * HOUR * SECOND, claimed_at=now, **more)
    put(dashboard.engine.store, lease, kind="claimed")


def free(dashboard, name, how="released"):
    put(dashboard.engine.store, a_lease(name, ends=None), kind=how)


def bars(page_text):
    """(agent, tooltip) of each bar."""
    found = []
    for item in re.findall(r"<li>(.*?)</li>", page_text.partition('class="timeline agents"')[2], re.DOTALL):
        owner = re.search(r'aria-label="([^"]*): held', item)[1]
        found += [(owner, title) for title in re.findall(r"<title>([^<]*)</title>", item)]
    return found


def test_each_agent_has_a_row_with_links_to_what_it_held(dashboard, visitor):
    claim(dashboard, "deploy", "ada")
    dashboard.later(600)
    free(dashboard, "deploy")
    claim(dashboard, "deploy", "bob")
    dashboard.later(60)
    text = visitor.get("/ui/timeline")
    (ada, told), (bob, also) = bars(text)
    assert (ada, bob) == ("ada", "bob")
    assert told.startswith("job deploy: released after 10 min, from ")
    assert also.startswith("job deploy: held for 1 min, since ")
    assert text.count('<a href="/ui/jobs/deploy" aria-label="job deploy: ') == 2
    assert 'href="/ui/held?owner=bob"' in text
    assert len(visitor.rows("/ui/timeline")) == 2, "the same as a table"


@pytest.mark.parametrize(("hours", "names"), [(1, ["late"]), (6, ["early", "late"]), (24, ["early", "first", "late"])])
def test_the_hours_can_be_chosen(dashboard, hours, names):
    for name in ("first", "early", "late"):
        claim(dashboard, name, name)
        dashboard.later(60)
        free(dashboard, name)
        dashboard.later(4 * HOUR if name != "late" else 60)
    text = Visitor(dashboard).get(f"/ui/timeline?hours={hours}")
    assert [owner for owner, _ in bars(text)] == names
    assert f'href="?hours={hours}" aria-current="true"' in text


def test_what_was_claimed_before_the_events_that_are_read_is_shown(dashboard, visitor, monkeypatch):
    monkeypatch.setattr(page, "EVENTS_AT_ONCE", 2)
    monkeypatch.setattr(page, "MAX_EVENTS", 4)
    claim(dashboard, "old", "ada")
    for number in range(6):
        dashboard.later(60)
        claim(dashboard, f"new-{number}", "bob")
    text = visitor.get("/ui/timeline")
    assert [owner for owner, _ in bars(text)] == ["ada"] + ["bob"] * 6
    assert "too many events" in text
    monkeypatch.setattr(page, "MAX_EVENTS", 400)
    dashboard.later(60)
    claim(dashboard, "last", "bob")
    assert "too many events" not in visitor.get("/ui/timeline?hours=24")


def test_rows_and_bars_are_bounded_and_the_page_says_so(dashboard, visitor, monkeypatch):
    monkeypatch.setattr(page, "PAGE_SIZE", 3)
    monkeypatch.setattr(agent_timeline, "MAX_BARS", 2)
    for number in range(5):
        claim(dashboard, f"job-{number}", f"agent-{number}")
    for number in range(3):
        claim(dashboard, f"more-{number}", "agent-0")
    text = visitor.get("/ui/timeline")
    assert [owner for owner, _ in bars(text)] == ["agent-0", "agent-0", "agent-1", "agent-2"]
    assert ("2 older not drawn" in text, "1 to 3 of 5" in text) == (True, True)
    assert [owner for owner, _ in bars(visitor.get("/ui/timeline?page=2"))] == ["agent-3", "agent-4"]


def test_hostile_names_stay_text(dashboard, visitor):
    claim(dashboard, 'x"><script>alert(1)</script>', 'y"\u202e onfocus="z')
    text = visitor.get("/ui/timeline")
    assert ("<script>" in text, ' onfocus="z' in text, "\u202e" in text) == (False, False, False)
    assert "\\u{202e}" in text


def test_elections_are_shown_to_those_who_may_see_them(dashboard, visitor):
    claim(dashboard, "__election/room", "leader", kind="election")
    assert 'href="/ui/elections" aria-label="election room: held' in visitor.get("/ui/timeline")


def test_nothing_is_held(visitor):
    assert "No agent held anything in the last hour." in visitor.words("/ui/timeline?hours=1")
