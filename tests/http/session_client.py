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


def resume(account: Account, life: Body, **fields: Any) -> Body:
    return begin(account, life["name"], status=200, secret=life["secret"], **fields)


def path(life: Body, verb: str = "") -> str:
    return f"/v1/sessions/{life['session_id']}{verb}"


def beat(account: Account, life: Body, **fields: object) -> Answer:
    return account.post(path(life, "/heartbeat"), {"lease_id": life["lease_id"], **fields})


def write(account: Account, life: Body, **fields: object) -> Answer:
    return account.post(path(life, "/context"), {"lease_id": life["lease_id"], **fields})


def close(account: Account, life: Body) -> Answer:
    return account.send_json("DELETE", path(life), {"lease_id": life["lease_id"]})


def claim_task(account: Account, life: Body, **fields: object) -> Body:
    """A new task, held for this life."""
    made = pending(account, **fields)
    return claimed(account.do("claim", made["id"], session_id=life["session_id"], worker_id="me"))


def claim_job(account: Account, life: Body, **fields: object) -> Body:
    """A new job, held for this life."""
    bound = {"owner": "me", "session_id": life["session_id"], **fields}
    return done(account.post(job_path(fresh(), "/claim"), bound))
