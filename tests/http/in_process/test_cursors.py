"""Cursors that would skip something in silence are refused: of another log, of another account, or made up."""

import base64

import pytest

from tests.compat.orchestrion.account import register
from tests.http.job_client import fresh, job_path
from tests.http.replies import done, refused, refused_as_problem
from tests.http.session_client import begin


@pytest.fixture
def other(server):
    """Another account, with a longer log."""
    other = register(server.anyone)
    for _ in range(9):
        done(other.create(), 201)
    return other


def end_of_log(account):
    return done(account.get("/v1/events"))["nextCursor"]


def invalid_cursor(answer):
    assert answer.status == 400, str(answer)
    (error,) = answer.json["errors"]
    assert (error["pointer"], error["code"]) == ("/cursor", "invalid_cursor")


@pytest.mark.parametrize("more", ["", "&wait_seconds=5", "&request_id=r", "&subject=task:*"])
def test_a_cursor_beyond_the_end_of_the_log_is_refused(account, other, more):
    last = end_of_log(account)
    assert done(account.get(f"/v1/events?after={last}"))["events"] == []
    for cursor in (last + 1, end_of_log(other), 2**53):
        body = refused_as_problem(account.get(f"/v1/events?after={cursor}{more}"), 409, "cursor_ahead")
        assert body["last"] == last


def test_a_stream_from_a_cursor_beyond_the_end_of_the_log_is_refused(account, other):
    cursor = end_of_log(other)
    stream = {"Accept": "text/event-stream"}
    refused_as_problem(account.send("GET", "/v1/events", **stream, Last_Event_ID=str(cursor)), 409, "cursor_ahead")
    refused_as_problem(account.send("GET", f"/v1/events?after={cursor}", **stream), 409, "cursor_ahead")


def test_an_unknown_cursor_of_a_list_of_tasks_is_refused(account, other):
    ids = [done(account.create(), 201)["id"] for _ in range(3)]
    foreign = done(other.list("limit=1"))["nextCursor"]
    for cursor in ("zzz", "tsk_~", foreign, ids[0][:-1], ids[0] + "0"):
        invalid_cursor(account.list(f"cursor={cursor}"))
    assert [task["id"] for task in done(account.list(f"cursor={ids[1]}"))["tasks"]] == [ids[0]]


def test_a_cursor_beyond_the_history_of_a_task_is_refused(account):
    task = done(account.create(), 201)["id"]
    assert done(account.get(f"/v1/tasks/{task}/events?after=1"))["events"] == []
    assert refused(account.get(f"/v1/tasks/{task}/events?after=2"), 409, "cursor_ahead")["last"] == 1
    refused(account.get("/v1/tasks/tsk_none/events?after=2"), 404, "task_not_found")


def test_an_unknown_cursor_of_sessions_and_jobs_is_refused(account, other):
    begin(account)
    theirs = begin(other)["session_id"]
    for cursor in ("zzz", theirs):
        invalid_cursor(account.get(f"/v1/sessions?cursor={cursor}"))
    job = fresh()
    done(other.post(f"{job_path(job)}/claim", {"owner": "me"}))
    cursor = base64.urlsafe_b64encode(job.encode()).decode().rstrip("=")
    invalid_cursor(account.get(f"/v1/jobs?cursor={cursor}"))
    assert done(other.get(f"/v1/jobs?cursor={cursor}"))["jobs"] == []


def test_an_export_from_a_foreign_cursor_is_refused(account, other):
    foreign = done(other.get("/v1/account/export?limit=1"))["nextCursor"]
    while "tasks\n" not in base64.urlsafe_b64decode(foreign + "==").decode():
        foreign = done(other.get(f"/v1/account/export?limit=1&cursor={foreign}"))["nextCursor"]
    of_task = done(other.get(f"/v1/account/export?limit=1&cursor={foreign}"))["nextCursor"]
    invalid_cursor(account.get(f"/v1/account/export?cursor={of_task}"))
    beyond = base64.urlsafe_b64encode(f"events\n{end_of_log(other)}".encode()).decode().rstrip("=")
    refused_as_problem(account.get(f"/v1/account/export?cursor={beyond}"), 409, "cursor_ahead")


def test_a_replay_or_a_list_of_deliveries_from_beyond_the_log_is_refused(account):
    hook = done(account.post("/v1/webhooks", {"url": "https://hooks.example.com/x"}), 201)["webhook_id"]
    beyond = end_of_log(account) + 1
    refused_as_problem(account.post(f"/v1/webhooks/{hook}/replay", {"after": beyond}), 409, "cursor_ahead")
    refused_as_problem(account.get(f"/v1/webhooks/{hook}/deliveries?cursor={beyond}"), 409, "cursor_ahead")
    assert done(account.post(f"/v1/webhooks/{hook}/replay", {"after": beyond - 1}))["replayed"] == 0
