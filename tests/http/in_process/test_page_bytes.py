"""Pages are bounded in bytes as well as in records, and their cursors lead through everything once."""

import tracemalloc

import pytest

from holdfast.core.page import PAGE_BYTES
from holdfast.core.task import Handover
from tests.http.in_process_app import InProcessServer
from tests.http.job_client import fresh, job_path, root
from tests.http.replies import done
from tests.http.session_client import begin
from tests.support import make_store, transact
from tests.task_commands import beat, create, take_this

TEXT = "x" * 60_000
RECORD = 64 * 1024
"""More than the largest single record here."""
COUNT = 90
"""More than fit on one page."""


@pytest.fixture
def full_account(account):
    """An account whose tasks, sessions and jobs do not fit on one page each."""
    items = [{"op": "create", "type": "big", "payload": {"text": TEXT}} for _ in range(COUNT)]
    done(account.post("/v1/tasks/batch", {"items": items}))
    for _ in range(COUNT):
        begin(account, name=fresh(), context={"text": TEXT})
        path = job_path(fresh())
        lease = done(account.post(f"{path}/claim", {"owner": "me"}))["lease_id"]
        done(account.post(f"{path}/heartbeat", {"lease_id": lease, "checkpoint": TEXT}))
    return account


def pages(account, path, cursor="cursor"):
    """All pages of a list; each answer must be within the bound."""
    following, found = None, []
    while True:
        answer = account.get(path if following is None else f"{path}&{cursor}={following}")
        assert len(answer.raw) <= PAGE_BYTES + 2 * RECORD
        found.append(done(answer))
        following = found[-1]["nextCursor"]
        if not found[-1]["hasMore"]:
            return found


def test_lists_and_the_export_are_bounded_in_bytes(full_account):
    for path, records, key in [
        ("/v1/tasks?limit=100", "tasks", "id"),
        ("/v1/sessions?limit=1000", "sessions", "session_id"),
        ("/v1/jobs?limit=1000", "jobs", "job_id"),
    ]:
        found = pages(full_account, path)
        keys = [record[key] for page in found for record in page[records]]
        assert len(found) > 1
        assert len(keys) == len(set(keys)) == COUNT, path
    records = [record for page in pages(full_account, "/v1/account/export?limit=1000") for record in page["records"]]
    assert [record["record"] for record in records].count("task") == COUNT
    assert [record["record"] for record in records].count("session") == COUNT
    events = [record["seq"] for record in records if record["record"] == "event"]
    assert events == list(range(1, len(events) + 1))


def test_a_list_of_large_reservations_is_bounded_in_bytes_and_complete(account):
    count = 400
    for number in range(count):
        paths = [f"{number}/{place}/{TEXT[:490]}" for place in range(20)]
        asked = {"space": "acme/shop", "owner": f"o{number % 2}", "paths": paths, "metadata": {"text": TEXT[:4000]}}
        done(account.post("/v1/reservations", asked))
    for path, expected in (
        ("/v1/reservations?limit=1000", count),
        ("/v1/reservations?limit=1000&owner=o1", count // 2),
    ):
        found = pages(account, path)
        keys = [record["reservation_id"] for page in found for record in page["reservations"]]
        assert len(keys) == len(set(keys)) == expected
    assert len(pages(account, "/v1/reservations?space=acme/shop&limit=1000")) > 1


def test_one_event_of_a_task_is_read_without_its_whole_history(tmp_path):
    store = make_store("sqlite", tmp_path, str)
    note, beats = "n" * 4_000, 1_000
    transact(store, create("t1"), take_this("t1"))
    for _ in range(beats // 250):
        transact(store, *(beat("t1", handover=Handover(note=f"{number} {note}")) for number in range(250)))
    server = InProcessServer(store)
    caller = root(server)
    try:
        tracemalloc.start()
        first = done(caller.get("/v1/tasks/t1/events?limit=1"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert first["hasMore"]
        assert peak < beats * len(note) // 4
        found = pages(caller, "/v1/tasks/t1/events?limit=700", "after")
        assert [event["version"] for page in found for event in page["events"]] == list(range(1, beats + 3))
        assert done(caller.get("/v1/tasks/t1/attempts"))["attempts"][0]["attempt"] == 1
    finally:
        server.close()
