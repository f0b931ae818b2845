"""The progress of a held job or task is a bar on its own page and in every list."""

import re

import pytest

from holdfast.core.row import SECOND
from holdfast.core.task.holding import Handover
from tests.dashboard.in_process import InProcessDashboard
from tests.support import claim, heartbeat, run
from tests.task_commands import beat, begin, create, take

PAGES = {
    "/": 2, "/ui/jobs": 1, "/ui/jobs/deploy": 1, "/ui/tasks": 1, "/ui/tasks?state=claimed": 1, "/ui/tasks/t1": 1,
    "/ui/agents/s1": 2,
}  # fmt: skip
"""The pages, and how many bars each has: of a job, of a task, or of both."""
BAR = r'max="100" value="(\d+)" aria-label="progress"></progress><span class="percent">(\d+) % done'


@pytest.fixture(scope="module")
def dashboard():
    dashboard = InProcessDashboard()
    run(dashboard.engine.store, begin(ttl=3600 * SECOND))
    run(dashboard.engine.store, create("t1"))
    run(dashboard.engine.store, claim("deploy", "l1", session_id="s1", ttl=3600 * SECOND))
    run(dashboard.engine.store, take("work", session_id="s1"))
    yield dashboard
    dashboard.close()


def show(dashboard, path, progress):
    run(dashboard.engine.store, beat("t1", handover=Handover(progress=progress)))
    run(dashboard.engine.store, heartbeat("deploy", "l1", progress=progress))
    dashboard.later(3)  # some numbers are kept for two seconds
    return dashboard.send("GET", path, cookie=dashboard.sign_in()).raw.decode()


@pytest.mark.parametrize("path", PAGES)
def test_progress_is_a_bar_with_its_message(dashboard, path):
    page = show(dashboard, path, '{"percent":40,"message":"page <3>"}')
    assert re.findall(BAR, page) == [("40", "40")] * PAGES[path]
    assert "<span>page &lt;3&gt;</span>" in page
    assert re.findall(BAR, show(dashboard, path, '{"done":3,"of":4}')) == [("75", "75")] * PAGES[path]


@pytest.mark.parametrize("path", PAGES)
def test_other_progress_is_no_bar(dashboard, path):
    page = show(dashboard, path, '"almost"')
    assert '<span class="progress"><span>almost</span></span>' in page
    assert not re.findall(BAR, page)
    assert 'class="progress"' not in show(dashboard, path, '{"step":[1,2]}')
