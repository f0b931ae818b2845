"""A session that holds much, and lists of large locks, are read from the database a few at a time."""

import tracemalloc

import pytest

from holdfast.core.page import PAGE_BYTES
from holdfast.core.principal import Principal
from holdfast.transport.http.octostore import admin
from tests.compat.octostore.expect import exact
from tests.http.in_process_app import InProcessServer
from tests.http.job_client import root
from tests.http.replies import done, refused
from tests.support import claim, heartbeat, make_store, put, transact
from tests.task_commands import begin, create, take

SESSION = "7b0e7b9a-5d5e-4c56-8f0e-0123456789ab"
TRUNCATED = admin.TRUNCATED[0].decode()
JOBS, JOB_BYTES = 150, 60_000
TASKS, TASK_BYTES = 45, 200_000
METADATA = '"' + "m" * 1_000 + '"'


@pytest.fixture(scope="module")
def caller(tmp_path_factory):
    """A caller of a server whose session holds 9 MB of jobs and 9 MB of tasks."""
    store = make_store("sqlite", tmp_path_factory.mktemp("large"), str)
    transact(store, begin(SESSION, ttl=3600 * 10**6))
    for first in range(0, JOBS, 50):
        names = [f"job-{number:03}" for number in range(first, first + 50)]
        transact(
            store, *(claim(name, f"l-{name}", session_id=SESSION, holder=SESSION, metadata=METADATA) for name in names)
        )
        text = '"' + "c" * JOB_BYTES + '"'
        transact(store, *(heartbeat(name, f"l-{name}", ttl=3600 * 10**6, checkpoint=text) for name in names))
    payload = '{"text":"' + "p" * TASK_BYTES + '"}'
    transact(store, *(create(f"task-{number:02}", payload=payload) for number in range(TASKS)))
    transact(store, take("work", session_id=SESSION, limit=TASKS))
    put(store, *(Principal("default", f"user-{n:04}", name=f"name-{n:04}", key_hash=f"{n}") for n in range(700)))
    server = InProcessServer(store)
    yield root(server)
    server.close()


def with_peak(ask):
    """The answer to a request, and the most memory that it took."""
    tracemalloc.start()
    try:
        return ask(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_a_session_holds_is_read_page_by_page(caller):
    path, cursor, jobs, tasks, pages = f"/v1/sessions/{SESSION}", None, [], [], 0
    while True:
        answer = caller.get(path if cursor is None else f"{path}?cursor={cursor}")
        assert len(answer.raw) <= PAGE_BYTES + 2 * TASK_BYTES
        page = done(answer)
        jobs += [job["job_id"] for job in page["jobs"]]
        tasks += [task["id"] for task in page["tasks"]]
        pages, cursor = pages + 1, page["nextCursor"]
        assert page["hasMore"] is (cursor is not None)
        if cursor is None:
            break
    assert pages > 4
    assert jobs == [f"job-{number:03}" for number in range(JOBS)]
    assert tasks == [f"task-{number:02}" for number in range(TASKS)]


@pytest.mark.parametrize("cursor", ["zzz", "bGVhc2VzCm5vYm9keQ", "dGFza3MKbm9ib2R5", "ZXZlbnRzCjE"])
def test_a_cursor_that_no_page_returned_is_refused(caller, cursor):
    refused(caller.get(f"/v1/sessions/{SESSION}?cursor={cursor}"), 400, "invalid_request")


def test_the_list_of_locks_is_read_in_pages_of_a_few_bytes(caller):
    answer, peak = with_peak(lambda: caller.get("/locks"))
    assert len(done(answer)["locks"]) == JOBS
    assert peak < JOBS * JOB_BYTES / 2


def test_the_admin_status_is_read_in_pages_of_a_few_bytes(caller):
    answer, peak = with_peak(lambda: caller.get("/admin/status"))
    body = exact(answer)
    assert (body["active_locks"], len(body["locks"]), answer.header(TRUNCATED)) == (JOBS, JOBS, None)
    assert body["total_users"] == len(body["users"]) >= 700
    assert peak < JOBS * JOB_BYTES / 2


def test_the_admin_status_has_no_more_bytes_than_a_page(caller, monkeypatch):
    monkeypatch.setattr(admin, "MAX_BYTES", 30_000)
    answer = caller.get("/admin/status")
    body = exact(answer)
    assert len(answer.raw) < 80_000
    assert body["active_locks"] == len(body["locks"]) < JOBS / 2
    assert answer.header(TRUNCATED) == "true"
    assert body["total_users"] == len(body["users"]) < 700
