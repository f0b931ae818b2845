"""`session_id` and `session_lease_id` of a write renew the session and what it holds; reads renew nothing."""

import pytest

from holdfast.store.memory.store import MemoryStore
from tests.compat.orchestrion.account import register
from tests.compat.orchestrion.states import pending
from tests.http.in_process_app import InProcessServer
from tests.http.job_client import fresh, job_path, pointers
from tests.http.replies import done, refused, refused_as_problem
from tests.http.session_client import begin
from tests.support import DrivenClock

TTL = 60


@pytest.fixture(scope="module")
def clock():
    return DrivenClock()


@pytest.fixture(scope="module")
def server(clock):
    server = InProcessServer(MemoryStore(clock))
    yield server
    server.close()


@pytest.fixture
def account(server):
    return register(server.anyone)


def carried(session):
    return {"session_id": session["session_id"], "session_lease_id": session["lease_id"]}


def holdings(account, session):
    """(a job, a task, a reservation) that the session holds for a minute, as (path, lease id)."""
    given = carried(session)
    job = done(account.post(job_path(fresh(), "/claim"), {"owner": "me", "ttl_seconds": TTL, **given}))
    task = done(account.do("claim", pending(account, leaseDurationSeconds=TTL)["id"], **given))
    wanted = {"space": "acme/shop", "owner": "me", "paths": ["src/"], "ttl_seconds": TTL, **given}
    files = done(account.post("/v1/reservations", wanted))
    return (
        (job_path(job["job_id"]), job["lease_id"]),
        (f"/v1/tasks/{task['id']}", task["leaseId"]),
        (f"/v1/reservations/{files['reservation_id']}", files["lease_id"]),
    )


def time_left(account):
    return {held["kind"]: held["expires_in_seconds"] for held in done(account.get("/v1/mine"))["held"]}


def test_each_write_that_carries_the_session_renews_everything_and_reads_renew_nothing(account, clock):
    session = begin(account, fresh("agent"), ttl_seconds=TTL)
    (job, job_lease), (task, task_lease), (files, files_lease) = holdings(account, session)
    everything = dict.fromkeys(("session", "job", "task", "reservation"), TTL)
    assert time_left(account) == everything
    for path, lease_id, more in (
        (f"{job}/heartbeat", job_lease, {}),
        (f"{task}/heartbeat", task_lease, {}),
        (f"{files}/heartbeat", files_lease, {}),
        (f"{files}/extend", files_lease, {"paths": ["docs/"]}),
        (f"{files}/release", files_lease, {"paths": ["docs/"]}),
    ):
        clock.advance(TTL // 3)
        for read in (job, task, files, f"/v1/sessions/{session['session_id']}", "/v1/mine"):
            done(account.get(read))
        assert set(time_left(account).values()) == {TTL * 2 // 3}
        done(account.post(path, {"lease_id": lease_id, **more, **carried(session)}))
        assert time_left(account) == everything, path
    for path, lease_id, kind in (
        (job, job_lease, "job"),
        (task, task_lease, "task"),
        (files, files_lease, "reservation"),
    ):
        clock.advance(TTL // 3)
        done(account.post(f"{path}/release", {"lease_id": lease_id, **carried(session)}))
        del everything[kind]
        assert time_left(account) == everything


def test_half_a_proof_or_a_wrong_one_is_refused_and_changes_nothing(account, clock):
    session = begin(account, fresh("agent"), ttl_seconds=TTL)
    (job, job_lease), (task, task_lease), (files, files_lease) = holdings(account, session)
    clock.advance(TTL // 2)
    for sent, pointer in (
        ({"session_id": session["session_id"]}, "/session_lease_id"),
        ({"session_lease_id": session["lease_id"]}, "/session_id"),
        ({"session_id": "x", "session_lease_id": session["lease_id"]}, "/session_id"),
        ({"session_id": session["session_id"], "session_lease_id": "x" * 257}, "/session_lease_id"),
    ):
        for path, lease_id in ((job, job_lease), (files, files_lease)):
            answer = account.post(f"{path}/heartbeat", {"lease_id": lease_id, **sent})
            assert pointers(refused_as_problem(answer, 400, "invalid_request")) == {pointer}
        refused(account.post(f"{task}/complete", {"lease_id": task_lease, **sent}), 400, "invalid_request")
    for sent, code in (
        ({"session_id": session["session_id"], "session_lease_id": "wrong"}, "lease_lost"),
        ({"session_id": "00000000-0000-4000-8000-000000000000", "session_lease_id": "wrong"}, "session_not_found"),
    ):
        assert account.post(f"{job}/release", {"lease_id": job_lease, **sent}).json["error"] == code
    assert set(time_left(account).values()) == {TTL // 2}


def test_a_claim_lengthens_the_lease_of_a_task_to_fifteen_minutes_at_most(account):
    task = pending(account, leaseDurationSeconds=TTL)
    for wrong in (29, 901):
        refused(account.do("claim", task["id"], lease_duration_seconds=wrong), 400, "invalid_request")
    claimed = done(account.do("claim", task["id"], lease_duration_seconds=900))
    assert claimed["leaseDurationSeconds"] == 900
    assert claimed["agent_contract"]["lease_expires_in_seconds"] == 900
    back = done(account.do("release", task["id"], lease_id=claimed["leaseId"]))
    assert back["leaseDurationSeconds"] == TTL
