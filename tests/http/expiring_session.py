"""A session that is left to expire, and what it held, observed after its expiry.

A session lasts at least ten seconds. They pass while other tests run.
"""

from typing import Any, Self

from tests.compat.octostore.wire import Answer
from tests.compat.orchestrion.account import Account
from tests.http.job_client import job_path

TTL_SECONDS = 10
PATIENCE_SECONDS = 18


class ExpiringSession:
    """A session that holds tasks and a job; `over` waits until it has expired."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.session = self.begin("silent")
        self.other_session = self.begin("lasting", ttl_seconds=3600)
        self.tasks = {
            "idle": self.hold("idle", priority=1),
            "worked on": self.hold("worked_on"),
            "asked to stop": self.hold("asked"),
            "ended by force": self.hold("forced"),
            "on its last attempt": self.hold("last", maxAttempts=1),
            "of another": self.hold("other", self.other_session),
        }
        worked_on = self.tasks["worked on"]
        account.do("heartbeat", worked_on["id"], lease_id=worked_on["leaseId"], checkpoint={"page": 7}, note="half way")
        account.do("cancel", self.tasks["asked to stop"]["id"], mode="request")
        account.do("cancel", self.tasks["ended by force"]["id"], mode="force")
        self.tasks["claimed under a key"] = self.hold("keyed", key="silent")
        bound = {"owner": "me", "session_id": self.session["session_id"], "ttl_seconds": 3600}
        self.job = "silent-job"
        self.lease = account.post(job_path(self.job, "/claim"), bound).json

    def begin(self, name: str, **fields: object) -> dict[str, Any]:
        given = {"name": name, "ttl_seconds": TTL_SECONDS, "turn": 3, "next_action": "go on", **fields}
        session: dict[str, Any] = self.account.post("/v1/sessions", given).json
        return session

    def hold(
        self, type: str, session: dict[str, Any] | None = None, *, key: str = "", **fields: object
    ) -> dict[str, Any]:
        made = self.account.create(type=type, **fields).json
        held: dict[str, Any] = self.claim(made["id"], session, key=key).json
        return held

    def claim(self, task_id: str, session: dict[str, Any] | None = None, *, key: str = "") -> Answer:
        caller = self.account.with_headers(Idempotency_Key=key) if key else self.account
        bound = {"worker_id": "silent", "session_id": (session or self.session)["session_id"]}
        return caller.post(f"/v1/tasks/{task_id}/claim", bound)

    def over(self) -> Self:
        """Wait until the expiry of the session is in the log."""
        end = f"subject=session:{self.session['session_id']}&kind=session.expired"
        told = self.account.get(f"/v1/events?{end}&wait_seconds={PATIENCE_SECONDS}").json["events"]
        assert told, f"the session has not expired after {PATIENCE_SECONDS} s"
        return self
