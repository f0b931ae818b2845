"""The same pages on every store."""

import pytest

from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.task import Task
from tests.dashboard.in_process import InProcessDashboard
from tests.reservation_commands import reserve
from tests.support import ACCOUNT, START, STORES, a_lease, a_session, claim, make_store, put, release, run

SHOWN = {
    "/": ("deploy/web", "src/auth/", "worker", "queue-of-tests", "session-1", "claimed"),
    "/ui/jobs": ("deploy/web",),
    "/ui/jobs/deploy/web": ("worker", "former", "released", "a note"),
    "/ui/files": ("acme/shop", "src/auth/", "editor", "a reason"),
    "/ui/files/editor": ("src/auth/", "editor", "a reason", "waits", "reserved"),
    "/ui/agents": ("session-1", "reading"),
    "/ui/agents/s1": ("session-1", "reading", "&#34;step&#34;: 3"),
    "/ui/elections": ("room-of-tests", "candidate"),
}


@pytest.fixture(params=STORES)
def dashboard(request, tmp_path, new_postgres_database, clock):
    store = make_store(request.param, tmp_path, new_postgres_database, clock)
    run(store, claim("deploy/web", "l0", owner="former"))
    run(store, release("deploy/web", "l0", note="a note"))
    run(store, claim("deploy/web", "l1"))
    run(store, reserve("editor", "src/auth/", reason="a reason"))
    run(store, reserve("waits", "src/**/*.py", may_wait=True))
    put(
        store,
        a_session("s1", name="session-1", last_action="reading", context='{"step":3}'),
        a_lease(f"{ELECTION_PREFIX}room-of-tests", kind="election", owner="candidate"),
        Task(ACCOUNT, "t1", type="queue-of-tests", created_at=START, ready=True),
        kind="created",
    )
    dashboard = InProcessDashboard(store, clock)
    yield dashboard
    dashboard.close()
    store.close()


def test_every_page_shows_the_stored_data(dashboard):
    cookie = dashboard.sign_in()
    for path, words in SHOWN.items():
        answer = dashboard.send("GET", path, cookie=cookie)
        assert answer.status == 200, path
        for word in words:
            assert word in answer.raw.decode(), (path, word)
