"""The charts page: the numbers of the roll-ups as lines and as tables, for the ranges and types asked for."""

import re

import pytest

from holdfast.core.acl import hash_token
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.engine.rollups.thread import RollupThread
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.dashboard.charts.lines import UNKNOWN, Line, draw_lines, round_up
from holdfast.transport.dashboard.charts.rollups import number_text, round_up_span, span_text
from tests.dashboard.in_process import InProcessDashboard, Visitor
from tests.support import ACCOUNT, START, DrivenClock, claim, put, transact
from tests.task_commands import complete, create, fail, take

KEYS = {"read": "a key that reads all", "jobs:read": "a key for jobs only"}


@pytest.fixture(scope="module")
def counted():
    store = MemoryStore(clock := DrivenClock(START // 3600 // SECOND * 3600 * SECOND))
    put(
        store,
        *(Principal(ACCOUNT, f"k-{scope}", name=scope, key_hash=hash_token(key), scopes=scope, created_at=START)
          for scope, key in KEYS.items()),
        Principal(ACCOUNT, "k-team", name="team", key_hash=hash_token("a key of a team"), scopes="jobs", prefix="team/",
                  created_at=START),
        kind="created",
    )  # fmt: skip
    dashboard = InProcessDashboard(store, clock)
    transact(store, create("t1", type="render<b>"), create("t2", type="index"), create("t3", type="index"))
    transact(store, claim("deploy", ttl=10**12))
    clock.advance(30)
    transact(store, take("index"))
    clock.advance(60)
    transact(store, complete("t2"))
    transact(store, take("index", seed="s2"))
    transact(store, fail("t3", seed="s2", reason="no", permanent=True))
    RollupThread(store).run()
    clock.advance(300)
    yield dashboard
    dashboard.close()


def section(page, chart):
    return re.search(rf'<section class="panel" aria-labelledby="{chart}-title">.*?</section>', page, re.DOTALL)[0]


def rows_of(page, chart):
    found = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", section(page, chart))
    return {at: re.findall(r">([^<]+)</td>", numbers) for at, numbers in found}


def test_before_the_first_pass_the_page_says_that_nothing_is_counted(dashboard):
    assert "Nothing is counted yet" in Visitor(dashboard).words("/ui/charts")


def test_tables_have_the_numbers_of_every_minute(counted):
    page = Visitor(counted).get("/ui/charts")
    times = list(rows_of(page, "throughput"))
    assert len(times) == 30
    throughput, depth, failures = (list(rows_of(page, name).values()) for name in ("throughput", "depth", "failures"))
    created, done = (sum(int(row[column]) for row in throughput) for column in (0, 1))
    assert (created, done) == (3, 1)
    assert [sum(int(row[column]) for row in failures) for column in range(3)] == [1, 0, 1]
    assert depth[0] == ["1", "0", "0"], "without events the last depth still holds"
    assert depth[-1] == [UNKNOWN] * 3, "before the first pass it is unknown"
    waits = [row for row in rows_of(page, "waiting").values() if row[0] != UNKNOWN]
    assert len(waits) == 2
    assert 24 <= float(waits[-1][0].removesuffix(" s")) <= 32
    held = list(rows_of(page, "holders").values())
    assert held[0] == ["1", "0", "0"]


@pytest.mark.parametrize("shown", ["30m", "3h", "1d", "7d", "30d"])
def test_every_range_counts_the_same_tasks(counted, shown):
    page = Visitor(counted).get(f"/ui/charts?range={shown}")
    assert sum(int(row[0]) for row in rows_of(page, "throughput").values()) == 3
    assert f'href="?range={shown}" aria-current="true"' in page


def test_a_type_has_its_own_charts_and_its_name_is_escaped(counted):
    visitor = Visitor(counted)
    page = visitor.get("/ui/charts")
    assert "render&lt;b&gt;" in page
    assert "render<b>" not in page
    page = visitor.get("/ui/charts?type=index")
    assert sum(int(row[0]) for row in rows_of(page, "throughput").values()) == 2
    assert 'aria-labelledby="holders-title"' not in page
    page = visitor.get("/ui/charts?type=unknown&range=nonsense")
    assert sum(int(row[0]) for row in rows_of(page, "throughput").values()) == 0


def test_a_key_sees_only_charts_of_what_it_may_list(counted):
    page = Visitor(counted, KEYS["jobs:read"]).get("/ui/charts")
    assert "jobs and locks" in page
    assert "throughput-title" not in page
    assert ">index<" not in page
    page = Visitor(counted, "a key of a team").get("/ui/charts")
    assert "may not see what the charts show" in page
    assert "<svg class=" not in page
    assert "throughput-title" in Visitor(counted, KEYS["read"]).get("/ui/charts")


def test_charts_have_units_a_legend_and_keyboard_access(counted):
    page = section(Visitor(counted).get("/ui/charts"), "running")
    assert re.search(r'<text class="level"[^>]*>[\d.]+ (s|min)</text>', page)
    assert 'class="line-key first">p50</span>' in page
    assert "<summary>Table</summary>" in page
    assert '<div class="numbers" id="running-scroll" tabindex="0"' in page, "a table that scrolls can be focused"
    assert " style=" not in page


def test_lines_have_gaps_where_nothing_is_known():
    line = Line("p50", "first", [1.0, 2.0, None, 4.0])
    chart = draw_lines(("x", "X", "x"), [line], ["1", "2", "3", "4"], number_text)
    assert [path for _, path in chart.paths] == ["M56 121L234.667 84".replace("234.667", "234.7"), "M591 10H593"]
    assert [row[1] for row in chart.rows] == [["1"], ["2"], [UNKNOWN], ["4"]]


def test_axes_end_at_round_numbers_with_units():
    assert [round_up(number) for number in (0, 3, 5, 81, 4000)] == [4, 4, 8, 100, 4000]
    ends = {0: "4 ms", 0.3: "400 ms", 0.5: "1 s", 41: "1 min", 500: "10 min", 2401: "1 h", 50_000: "1 d", 10**9: "40 d"}
    assert {number: span_text(round_up_span(number)) for number in ends} == ends
    assert [span_text(number) for number in (0, 0.25, 2.5, 120, 5400, 3 * 86_400)] == [
        "0 s", "250 ms", "2.5 s", "2 min", "1.5 h", "3 d"
    ]  # fmt: skip
