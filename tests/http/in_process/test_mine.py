"""`/v1/mine`: what a key holds; lease ids only with the secret of the session."""

import base64

import pytest

from holdfast.core.page import PAGE_BYTES
from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.states import held, pending
from tests.http.job_client import fresh, job_path, pointers
from tests.http.replies import done, refused_as_problem
from tests.http.session_client import begin, claim_job, claim_task, close, resume

FIELDS = {
    "kind", "id", "owner", "token", "claimed_at", "expires_at", "expires_in_seconds", "heartbeat_every_seconds",
    "session_id", "note", "checkpoint", "progress",
}  # fmt: skip


def mine(account, query="", **headers):
    return done(account.with_headers(**headers).get(f"/v1/mine{query}"))["held"]


def of_session(account, session, secret=None):
    """What a session holds, with its secret if given."""
    sent = {} if secret is None else {"Holdfast_Session_Secret": secret}
    return mine(account, f"?session_id={session['session_id']}", **sent)


def proof(session):
    return {"session_lease_id": session["lease_id"]}


def claim_for(account, session):
    """(a job, a task) claimed with the lease id of the session."""
    task = done(
        account.do("claim", pending(account)["id"], session_id=session["session_id"], worker_id="me", **proof(session))
    )
    return claim_job(account, session, **proof(session)), task


def other_key(account, *scopes, **more):
    made = done(account.post("/v1/keys", {"name": fresh("key"), "scopes": scopes or ["jobs", "tasks"], **more}), 201)
    return Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})


# -- the list ----------------------------------------------------------------------------------------------------


def test_everything_that_a_key_holds_is_listed_and_nothing_else(account):
    assert mine(account) == []
    session = begin(account, "agent")
    job = claim_job(account, session)
    task = held(account, worker_id="w1")
    done(account.acquire("lock", ttl_seconds=30))
    pending(account)
    other = other_key(account)
    claim_job(other, begin(other, "other"))
    listed = mine(account)
    assert [(each["kind"], each["id"]) for each in listed] == [
        ("session", session["session_id"]),
        *sorted([("job", job["job_id"]), ("lock", "lock")], key=lambda each: each[1]),
        ("task", task["id"]),
    ]
    assert len(mine(other)) == 2


def test_each_shows_its_owner_deadline_token_and_what_its_holder_wrote(account):
    session = begin(account, "agent", ttl_seconds=30)
    job = claim_job(account, session, ttl_seconds=600)
    left = {"note": "half done", "checkpoint": {"n": 1}, "progress": {"percent": 50}}
    done(account.post(job_path(job["job_id"], "/heartbeat"), {"lease_id": job["lease_id"], **left}))
    shown = mine(account)
    assert [set(each) - FIELDS for each in shown] == [{"generation"}, set()]
    assert {name: shown[1][name] for name in left} == left
    assert (shown[1]["owner"], shown[1]["token"], shown[1]["session_id"]) == ("me", job["token"], session["session_id"])
    assert shown[0]["owner"] == "agent"
    for each in shown:
        assert 25 <= each["expires_in_seconds"] <= 30, "a job ends with its session, which is sooner"
        assert 1 <= each["heartbeat_every_seconds"] <= 10


def test_a_task_shows_its_type(account):
    task = held(account, type="build")
    (shown,) = mine(account)
    assert (shown["id"], shown["type"]) == (task["id"], "build")


def test_what_was_released_or_closed_is_not_listed(account):
    session = begin(account)
    job = claim_job(account, session)
    done(account.post(job_path(job["job_id"], "/release"), {"lease_id": job["lease_id"]}))
    assert [each["kind"] for each in mine(account)] == ["session"]
    done(close(account, session))
    assert mine(account) == []


def test_an_owner_selects_what_was_claimed_under_that_label(account):
    session = begin(account, "agent")
    claim_job(account, session, owner="agent")
    claim_job(account, session, owner="somebody else")
    done(account.do("claim", pending(account)["id"], worker_id="agent"))
    assert [each["kind"] for each in mine(account, "?owner=agent")] == ["session", "job", "task"]
    assert [each["kind"] for each in mine(account, f"?owner=agent&session_id={session['session_id']}")] == [
        "session",
        "job",
    ]
    assert mine(account, "?owner=nobody") == []


def test_a_session_selects_itself_and_what_it_holds(account):
    sessions = [begin(account, name) for name in ("one", "two")]
    jobs = [claim_job(account, session) for session in sessions]
    task = claim_task(account, sessions[1])
    held(account)
    assert [each["id"] for each in of_session(account, sessions[0])] == [sessions[0]["session_id"], jobs[0]["job_id"]]
    assert [each["id"] for each in of_session(account, sessions[1])] == [
        sessions[1]["session_id"],
        jobs[1]["job_id"],
        task["id"],
    ]
    done(close(account, sessions[0]))
    assert of_session(account, sessions[0]) == []


@pytest.mark.parametrize(("query", "limits"), [("", range(1, 8)), ("session", range(1, 8))])
def test_pages_of_any_size_have_everything_once_and_in_order(account, query, limits):
    session = begin(account)
    for _ in range(2):
        claim_for(account, session)
    query = f"&session_id={session['session_id']}" if query else ""
    everything = mine(account, f"?{query}")
    assert len(everything) == 5
    for limit in limits:
        found, cursor, pages = [], "", 0
        while pages == 0 or cursor:
            page = done(account.get(f"/v1/mine?limit={limit}{query}{cursor}"))
            assert len(page["held"]) <= limit
            assert page["hasMore"] == (page["nextCursor"] is not None)
            found += page["held"]
            cursor = f"&cursor={page['nextCursor']}" if page["hasMore"] else ""
            pages += 1
        assert [each["id"] for each in found] == [each["id"] for each in everything]
        assert pages == -(-5 // limit)


def test_a_page_ends_after_about_4_mib(account):
    session = begin(account)
    for _ in range(80):
        job = claim_job(account, session)
        written = {"lease_id": job["lease_id"], "checkpoint": "c" * 60_000}
        done(account.post(job_path(job["job_id"], "/heartbeat"), written))
    first = account.get("/v1/mine?limit=1000")
    assert len(first.raw) < PAGE_BYTES + 100_000
    page = done(first)
    rest = done(account.get(f"/v1/mine?limit=1000&cursor={page['nextCursor']}"))
    assert (len(page["held"]) + len(rest["held"]), rest["hasMore"]) == (81, False)


# -- who may see it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scopes", "kinds"),
    [(["jobs"], ["session", "job"]), (["tasks"], ["session", "task"]), (["tasks:work"], ["session", "task"])],
)
def test_a_key_that_works_sees_its_own(account, scopes, kinds):
    key = other_key(account, *scopes)
    session = begin(key, "agent")
    if "jobs" in scopes:
        claim_job(key, session)
    else:
        task = pending(account)
        done(key.do("claim", task["id"], session_id=session["session_id"], worker_id="me"))
    assert [each["kind"] for each in mine(key)] == kinds


def test_a_key_that_only_reads_holds_nothing(account):
    claim_job(account, begin(account))
    assert mine(other_key(account, "read")) == []


def test_a_key_with_a_prefix_sees_what_it_claimed(account):
    key = other_key(account, "jobs", prefix="web/")
    done(key.post(job_path("web/a", "/claim"), {"owner": "me"}))
    done(account.post(job_path("web/b", "/claim"), {"owner": "me"}))
    assert [each["id"] for each in mine(key)] == ["web/a"]


def test_a_cursor_tells_no_key_what_it_may_not_see(account):
    """A cursor of a row that exists and one of a row that does not get the same answer."""
    session = begin(account, "agent")
    job, task = claim_job(account, session), claim_task(account, session)
    found = {"leases": job["job_id"], "tasks": task["id"], "sessions": session["session_id"]}
    limited, worker = other_key(account, "jobs", "tasks", prefix="web/"), other_key(account, "tasks:work")
    for key, table in ((limited, "leases"), (limited, "tasks"), (limited, "sessions"), (worker, "leases")):
        answers = []
        for row_id in (found[table], "absent"):
            cursor = base64.urlsafe_b64encode(f"{table}\n{row_id}".encode()).decode().rstrip("=")
            answers.append(key.get(f"/v1/mine?cursor={cursor}"))
        assert len({answer.status for answer in answers}) == 1, (table, answers)


# -- lease ids ---------------------------------------------------------------------------------------------------


def test_the_secret_of_a_session_gives_the_lease_ids_of_all_it_holds(account):
    session = begin(account)
    job, task = claim_for(account, session)
    assert [each["lease_id"] for each in of_session(account, session, session["secret"])] == [
        session["lease_id"],
        job["lease_id"],
        task["leaseId"],
    ]
    newest = resume(account, session)
    shown = of_session(account, session, session["secret"])
    assert [each["lease_id"] for each in shown] == [
        newest["lease_id"],
        newest["jobs"][0]["lease_id"],
        newest["tasks"][0]["leaseId"],
    ]
    done(account.post(job_path(job["job_id"], "/release"), {"lease_id": shown[1]["lease_id"]}))
    done(account.do("release", task["id"], lease_id=shown[2]["lease_id"]))


def test_without_the_secret_no_lease_id_is_shown(account):
    session = begin(account)
    claims = claim_for(account, session)
    secrets = [session["secret"], session["lease_id"], claims[0]["lease_id"], claims[1]["leaseId"]]
    for query in ("", f"?session_id={session['session_id']}", f"?session_id={session['session_id']}&secret=x"):
        answer = account.get(f"/v1/mine{query}")
        assert len(done(answer)["held"]) == 3
        assert not [secret for secret in (*secrets, "lease_id") if secret in answer.raw.decode()]
    wrong = account.with_headers(Holdfast_Session_Secret=session["secret"][:-1] + "x")
    refused_as_problem(wrong.get(f"/v1/mine?session_id={session['session_id']}"), 403, "forbidden")
    other = other_key(account).with_headers(Holdfast_Session_Secret=session["secret"])
    refused_as_problem(other.get(f"/v1/mine?session_id={session['session_id']}"), 404, "session_not_found")


def test_what_was_claimed_without_proof_has_no_lease_id_and_says_why(account):
    session = begin(account)
    job = claim_job(account, session)
    done(account.acquire("lock", ttl_seconds=30, session_id=session["session_id"], ephemeral=True))
    shown = {each["id"]: each for each in of_session(account, session, session["secret"])}
    assert shown[session["session_id"]]["lease_id"] == session["lease_id"]
    assert "lease_id_missing" not in shown[session["session_id"]]
    assert (shown[job["job_id"]]["lease_id"], shown["lock"]["lease_id"]) == (None, None)
    assert "session_lease_id" in shown[job["job_id"]]["lease_id_missing"]
    assert "Acquire the lock again" in shown["lock"]["lease_id_missing"]


# -- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "headers", "pointer"),
    [
        ("?session_id=x", {}, "/session_id"),
        ("?limit=0", {}, "/limit"),
        ("?limit=1001", {}, "/limit"),
        ("?cursor=x", {}, "/cursor"),
        ("?cursor=dGFza3MKeA", {}, "/cursor"),
        (f"?owner={'x' * 1025}", {}, "/owner"),
        ("", {"Holdfast_Session_Secret": "secret"}, "/session_id"),
        ("", {"Holdfast_Session_Secret": "two words"}, ""),
        ("", {"Holdfast_Session_Secret": "x" * 257}, ""),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(account, query, headers, pointer):
    body = refused_as_problem(account.with_headers(**headers).get(f"/v1/mine{query}"), 400, "invalid_request")
    assert pointers(body) == {pointer}


def test_the_session_of_another_key_and_an_absent_one_get_the_same_refusal(account):
    foreign = begin(other_key(account))["session_id"]
    for session_id in (foreign, "00000000-0000-4000-8000-000000000000"):
        refused_as_problem(account.get(f"/v1/mine?session_id={session_id}"), 404, "session_not_found")
