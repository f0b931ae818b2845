"""Existing ids for generated requests: without them nearly every request about a resource is answered 404."""

import time
import zlib
from typing import Any

from schemathesis import Case
from schemathesis.core.parameters import ParameterLocation

from tests.compat.octostore.server import Server
from tests.http.job_client import fresh, root

WAIT_SECONDS = 0.01
ADDRESS = "https://hooks.example.com/sample"
"""An allowed URL: a schema cannot describe which URLs are allowed."""
MAX_WAIT = 60


class SampleResources:
    """Creates a resource of the kind that a request is about, and puts its id into the request."""

    def __init__(self, server: Server) -> None:
        self._caller = root(server)
        self.url = f"http://127.0.0.1:{server.port}"
        self.headers = dict(self._caller.headers)

    def insert_ids(self, case: Case) -> None:
        """Replace three in four generated ids and proofs by existing ones.

        Values that were generated to be refused stay. The choice depends on the generated id alone, so that a failure
        can be repeated.
        """
        _shorten_wait(case.query)
        _shorten_wait(case.body)
        if isinstance(case.body, dict) and not _is_negative(case, ParameterLocation.BODY):
            _as_integers(case.body)
            self._adjust_body(case)
        if not case.path_parameters or _is_negative(case, ParameterLocation.PATH):
            return
        if zlib.crc32(repr(case.path_parameters).encode()) % 4 == 0:
            return
        name, proof = self._create(case.operation.path)
        case.path_parameters = dict.fromkeys(case.path_parameters, name)
        if isinstance(case.body, dict) and not _is_negative(case, ParameterLocation.BODY):
            # The server's own account requires the lease id that the schema, for other accounts, calls optional.
            case.body |= {field: value for field, value in proof.items() if field in {*case.body, "lease_id"}}

    def _adjust_body(self, case: Case) -> None:
        """Follow rules that a schema cannot express: about two fields together, or about the current time."""
        if case.body.get("idempotencyKey") is not None and case.headers:
            case.headers.pop("Idempotency-Key", None)
        case.body.pop("dependsOn", None)  # ids of other tasks
        for field, seconds in (("scheduledAt", 3600), ("deadlineAt", 7200), ("deadline", 7200)):
            if isinstance(case.body.get(field), str):
                case.body[field] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        if "question" in case.body:
            case.body.pop("onTimeout", None)
            case.body["choices"] = None
        if isinstance(case.body.get("approval"), dict):
            case.body["approval"] = True
        if isinstance(case.body.get("url"), str):
            case.body["url"] = ADDRESS
            self._delete_webhooks()
        if case.body.get("seq") is not None:
            case.body.pop("after", None)
        if case.body.get("ephemeral") and case.body.get("session_id") is None:
            case.body["session_id"] = self._caller.open_session().json["session_id"]

    def _create(self, path: str) -> tuple[str, dict[str, Any]]:
        """(id, proof) of a new resource of the kind that this path is about."""
        creators = {
            "/v1/jobs": self._job,
            "/v1/reservations": lambda: self._reservation(path),
            "/v1/queues": lambda: ("work", {}),
            "/v1/tasks": lambda: self._task(path),
            "/v1/questions": self._question,
            "/v1/keys": self._key,
            "/v1/sessions": self._session,
            "/sessions": lambda: (self._caller.open_session().json["session_id"], {}),
            "/v1/webhooks": lambda: (self._webhook("/v1/webhooks")["webhook_id"], {}),
            "/webhooks": lambda: (self._webhook("/webhooks")["id"], {}),
            "/locks": self._lock,
            "/elections": self._election,
        }
        return next(create for prefix, create in creators.items() if path.startswith(prefix))()

    def _reservation(self, path: str) -> tuple[str, dict[str, Any]]:
        wanted = {"space": fresh(), "owner": "sample", "paths": ["src/"]}
        made = self._caller.post("/v1/reservations", wanted).json
        if path.endswith("/claim"):
            proof = {"lease_id": made["lease_id"]}
            offered = self._caller.post(f"/v1/reservations/{made['reservation_id']}/offer", proof).json
            return made["reservation_id"], {"offer": offered["offer"]}
        return made["reservation_id"], {"lease_id": made["lease_id"], "token": made["token"]}

    def _job(self) -> tuple[str, dict[str, Any]]:
        job = self._caller.claim(fresh()).json
        return job["job_id"], {"lease_id": job["lease_id"], "token": job["token"]}

    def _key(self) -> tuple[str, dict[str, Any]]:
        return self._caller.post("/v1/keys", {"name": fresh(), "scopes": ["read"]}).json["keyId"], {}

    def _webhook(self, path: str) -> dict[str, Any]:
        self._delete_webhooks()
        return self._caller.post(path, {"url": ADDRESS}).json

    def _delete_webhooks(self) -> None:
        """The number of webhooks is limited."""
        for webhook in self._caller.get("/v1/webhooks").json["webhooks"]:
            self._caller.delete(f"/v1/webhooks/{webhook['webhook_id']}")

    def _session(self) -> tuple[str, dict[str, Any]]:
        session = self._caller.post("/v1/sessions", {"name": fresh()}).json
        return session["session_id"], {"lease_id": session["lease_id"], "if_version": session["context_version"]}

    def _lock(self) -> tuple[str, dict[str, Any]]:
        name = fresh()
        return name, {"lease_id": self._caller.acquire(name).json["lease_id"]}

    def _election(self) -> tuple[str, dict[str, Any]]:
        election = fresh()
        return election, {"leader_token": self._caller.campaign(election).json["leader_token"]}

    def _question(self) -> tuple[str, dict[str, Any]]:
        asked = {"type": "sample", "payload": {}, "approval": True}
        return self._caller.post("/v1/tasks", asked).json["questionId"], {"answer": "approve"}

    def _task(self, path: str) -> tuple[str, dict[str, Any]]:
        caller = self._caller
        task = caller.post("/v1/tasks", {"type": "sample", "payload": {}}).json["id"]
        if path.endswith(("/claim", "/cancel")):
            return task, {}
        held = caller.post(f"/v1/tasks/{task}/claim").json
        if path.endswith(("/requeue", "/resolve")):
            caller.post(f"/v1/tasks/{task}/fail", {"permanent": True, "lease_id": held["leaseId"]})
            return task, {}
        return task, {"lease_id": held["leaseId"], "fencing_token": held["fencingToken"]}


def _is_negative(case: Case, location: ParameterLocation) -> bool:
    return case.meta is not None and case.meta.is_negative_at(location)


def _shorten_wait(values: Any) -> None:
    """Wait almost no time, so that the tests are fast."""
    try:
        wait = float(values["wait_seconds"])
    except (KeyError, TypeError, ValueError):
        return
    if 0 < wait <= MAX_WAIT:
        values["wait_seconds"] = WAIT_SECONDS


def _as_integers(values: dict[str, Any]) -> None:
    """JSON Schema accepts 3.0 as an integer; Holdfast, like OctoStore, does not."""
    for name, value in values.items():
        if isinstance(value, float) and value.is_integer():
            values[name] = int(value)
