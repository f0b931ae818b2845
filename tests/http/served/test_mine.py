"""`/v1/mine` on both databases: an agent that was restarted finds what it holds, with its lease ids."""

import pytest

from tests.compat.orchestrion.states import pending
from tests.http.job_client import job_path
from tests.http.replies import done
from tests.http.session_client import begin, claim_job, claim_task

pytestmark = pytest.mark.waits(9)

pytest_plugins = ["tests.http.fresh_accounts"]


def test_a_restarted_agent_gets_its_lease_ids_by_its_secret_and_goes_on(account):
    session = begin(account, "agent")
    proof = {"session_lease_id": session["lease_id"]}
    job = claim_job(account, session, **proof)
    task = pending(account)
    done(account.do("claim", task["id"], session_id=session["session_id"], worker_id="me", **proof))
    found = account.with_headers(Holdfast_Session_Secret=session["secret"])
    held = done(found.get(f"/v1/mine?session_id={session['session_id']}"))["held"]
    assert [(each["kind"], each["id"]) for each in held] == [
        ("session", session["session_id"]),
        ("job", job["job_id"]),
        ("task", task["id"]),
    ]
    lease_ids = [each["lease_id"] for each in held]
    done(account.post(f"/v1/sessions/{session['session_id']}/heartbeat", {"lease_id": lease_ids[0]}))
    done(account.post(job_path(job["job_id"], "/release"), {"lease_id": lease_ids[1]}))
    done(account.do("complete", task["id"], lease_id=lease_ids[2]))
    assert [each["kind"] for each in done(account.get("/v1/mine"))["held"]] == ["session"]


def test_what_others_hold_is_not_listed(account, stranger):
    for other in (stranger, account):
        session = begin(other, "agent")
        claim_job(other, session)
        claim_task(other, session)
    mine = [done(each.get("/v1/mine"))["held"] for each in (account, stranger)]
    assert [len(held) for held in mine] == [3, 3]
    assert not {each["id"] for each in mine[0]} & {each["id"] for each in mine[1]}


def test_what_a_session_held_that_has_expired_is_not_listed(expired_session, account):
    held = done(expired_session.account.get("/v1/mine"))["held"]
    assert [each for each in held if each["session_id"] == expired_session.session["session_id"]] == []
    assert done(account.get("/v1/mine"))["held"] == []


@pytest.mark.parametrize("limit", [1, 2])
def test_pages_follow_one_another(account, limit):
    session = begin(account)
    expected = [session["session_id"], *sorted(claim_job(account, session)["job_id"] for _ in range(3))]
    found, cursor = [], ""
    while cursor is not None:
        page = done(account.get(f"/v1/mine?limit={limit}" + (f"&cursor={cursor}" if cursor else "")))
        found += [each["id"] for each in page["held"]]
        cursor = page["nextCursor"]
    assert found == expected
