"""Client for `/v1/sessions`."""

from typing import Any

from tests.compat.octostore.wire import Answer
from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import claimed
from tests.compat.orchestrion.states import pending
from tests.http.job_client import fresh, job_path
from tests.http.replies import Body, done


def begin(account: Account, name: str = "me", status: int = 201, **fields: object) -> Body:
    """Open a session by its name, or resume it."""
    return done(account.post("/v1/sessions", {"name": name, **fields}), status)


def resume(account: Account, session: Body, **fields: Any) -> Body:
    return begin(account, session["name"], status=200, secret=session["secret"], **fields)


def path(session: Body, verb: str = "") -> str:
    return f"/v1/sessions/{session['session_id']}{verb}"


def beat(account: Account, session: Body, **fields: object) -> Answer:
    return account.post(path(session, "/heartbeat"), {"lease_id": session["lease_id"], **fields})


def write(account: Account, session: Body, **fields: object) -> Answer:
    return account.post(path(session, "/context"), {"lease_id": session["lease_id"], **fields})


def close(account: Account, session: Body) -> Answer:
    return account.send_json("DELETE", path(session), {"lease_id": session["lease_id"]})


def claim_task(account: Account, session: Body, **fields: object) -> Body:
    """Create a task and claim it for this session."""
    made = pending(account, **fields)
    return claimed(account.do("claim", made["id"], session_id=session["session_id"], worker_id="me"))


def claim_job(account: Account, session: Body, **fields: object) -> Body:
    """Claim a new job for this session."""
    bound = {"owner": "me", "session_id": session["session_id"], **fields}
    return done(account.post(job_path(fresh(), "/claim"), bound))
