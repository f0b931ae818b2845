"""Every page shows the time until a job or a task is free again: until its own deadline or the end of its session."""

import re

import pytest

from holdfast.core.row import SECOND
from tests.dashboard.in_process import InProcessDashboard
from tests.support import claim, run
from tests.task_commands import beat, begin, create, heartbeat_session, take

SESSION_TTL, LONG = 10, 120
PAGES = ["/", "/ui/jobs", "/ui/jobs?state=all", "/ui/jobs/deploy", "/ui/tasks", "/ui/tasks/t1", "/ui/agents",
         "/ui/agents/s1"]  # fmt: skip


@pytest.fixture
def dashboard():
    dashboard = InProcessDashboard()
    store = dashboard.engine.store
    run(store, begin(ttl=SESSION_TTL * SECOND))
    run(store, create("t1"))
    run(store, claim("deploy", "l1", session_id="s1", ttl=LONG * SECOND))
    run(store, take("work", session_id="s1"))
    yield dashboard
    dashboard.close()


def seconds_left(dashboard, path):
    """The times left that a page shows, and the TTLs that they are part of."""
    page = dashboard.send("GET", path, cookie=dashboard.sign_in()).raw.decode()
    return [(int(left) // 1000, int(ttl) // 1000) for ttl, left in re.findall(LEFT, page)]


LEFT = r'max="(\d+)" value="(-?\d+)" data-left='


@pytest.mark.parametrize("path", PAGES)
def test_a_job_or_task_claimed_for_a_session_has_no_more_time_than_the_session(dashboard, path):
    dashboard.clock.advance(4)
    found = seconds_left(dashboard, path)
    assert found
    assert set(found) == {(SESSION_TTL - 4, SESSION_TTL)}, path


def test_a_session_that_renews_leaves_the_job_its_own_time(dashboard):
    store = dashboard.engine.store
    run(store, claim("own", "l2", ttl=5 * SECOND))
    dashboard.clock.advance(4)
    run(store, heartbeat_session())
    run(store, beat("t1"))
    assert seconds_left(dashboard, "/ui/jobs/own") == [(1, 5)]
    assert seconds_left(dashboard, "/ui/jobs/deploy") == [(SESSION_TTL, SESSION_TTL)]
