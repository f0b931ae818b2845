"""Real ids for made-up requests: without them nearly every question about a thing ends in 404."""

import time
import zlib
from typing import Any

from schemathesis import Case
from schemathesis.core.parameters import ParameterLocation

from tests.compat.octostore.server import Server
from tests.http.job_client import fresh, root

WAIT_SECONDS = 0.01
ADDRESS = "https://hooks.example.com/asked"
"""No schema tells which addresses are allowed."""
MAX_WAIT = 60


class Belongings:
    """A caller, who owns a thing of the kind that a request is about."""

    def __init__(self, server: Server) -> None:
        self._caller = root(server)
        self.url = f"http://127.0.0.1:{server.port}"
        self.headers = dict(self._caller.headers)

    def lend(self, case: Case) -> None:
        """Put a real id, and its proof, in the place of made-up ones: three times in four.

        What was made up to be refused stays as it is. The choice depends on the made-up id alone, so that a failure
        can be repeated.
        """
        _hurry(case.query)
        _hurry(case.body)
        if isinstance(case.body, dict) and not _is_negative(case, ParameterLocation.BODY):
            _as_integers(case.body)
            self._follow_rules(case)
        if not case.path_parameters or _is_negative(case, ParameterLocation.PATH):
            return
        if zlib.crc32(repr(case.path_parameters).encode()) % 4 == 0:
            return
        name, proof = self._thing(case.operation.path)
        case.path_parameters = dict.fromkeys(case.path_parameters, name)
        if isinstance(case.body, dict) and not _is_negative(case, ParameterLocation.BODY):
            case.body |= {field: value for field, value in proof.items() if field in case.body}

    def _follow_rules(self, case: Case) -> None:
        """What two fields mean together, or the time of day, no schema tells."""
        if case.body.get("idempotencyKey") is not None and case.headers:
            case.headers.pop("Idempotency-Key", None)
        if isinstance(case.body.get("scheduledAt"), str):
            case.body["scheduledAt"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        if isinstance(case.body.get("url"), str):
            case.body["url"] = ADDRESS
            self._make_room()
        if case.body.get("seq") is not None:
            case.body.pop("after", None)
        if case.body.get("ephemeral") and case.body.get("session_id") is None:
            case.body["session_id"] = self._caller.open_session().json["session_id"]

    def _thing(self, path: str) -> tuple[str, dict[str, Any]]:
        """(id, proof) of something of the kind that this path is about."""
        makers = {
            "/v1/jobs": self._job,
            "/v1/tasks": lambda: self._task(path),
            "/v1/keys": self._key,
            "/v1/sessions": self._life,
            "/sessions": lambda: (self._caller.open_session().json["session_id"], {}),
            "/v1/webhooks": lambda: (self._webhook("/v1/webhooks")["webhook_id"], {}),
            "/webhooks": lambda: (self._webhook("/webhooks")["id"], {}),
            "/locks": self._lock,
            "/elections": self._room,
        }
        return next(make for prefix, make in makers.items() if path.startswith(prefix))()

    def _job(self) -> tuple[str, dict[str, Any]]:
        job = self._caller.claim(fresh()).json
        return job["job_id"], {"lease_id": job["lease_id"], "token": job["token"]}

    def _key(self) -> tuple[str, dict[str, Any]]:
        return self._caller.post("/v1/keys", {"name": fresh(), "scopes": ["read"]}).json["keyId"], {}

    def _webhook(self, path: str) -> dict[str, Any]:
        self._make_room()
        return self._caller.post(path, {"url": ADDRESS}).json

    def _make_room(self) -> None:
        """There may be only so many webhooks."""
        for webhook in self._caller.get("/v1/webhooks").json["webhooks"]:
            self._caller.delete(f"/v1/webhooks/{webhook['webhook_id']}")

    def _life(self) -> tuple[str, dict[str, Any]]:
        life = self._caller.post("/v1/sessions", {"name": fresh()}).json
        return life["session_id"], {"lease_id": life["lease_id"], "if_version": life["context_version"]}

    def _lock(self) -> tuple[str, dict[str, Any]]:
        name = fresh()
        return name, {"lease_id": self._caller.acquire(name).json["lease_id"]}

    def _room(self) -> tuple[str, dict[str, Any]]:
        room = fresh()
        return room, {"leader_token": self._caller.campaign(room).json["leader_token"]}

    def _task(self, path: str) -> tuple[str, dict[str, Any]]:
        caller = self._caller
        task = caller.post("/v1/tasks", {"type": "lent", "payload": {}}).json["id"]
        if path.endswith(("/claim", "/cancel")):
            return task, {}
        held = caller.post(f"/v1/tasks/{task}/claim").json
        if path.endswith(("/requeue", "/resolve")):
            caller.post(f"/v1/tasks/{task}/fail", {"permanent": True})
        return task, {"lease_id": held["leaseId"], "fencing_token": held["fencingToken"]}


def _is_negative(case: Case, location: ParameterLocation) -> bool:
    return case.meta is not None and case.meta.is_negative_at(location)


def _hurry(values: Any) -> None:
    """Nobody waits here for long."""
    try:
        wait = float(values["wait_seconds"])
    except (KeyError, TypeError, ValueError):
        return
    if 0 < wait <= MAX_WAIT:
        values["wait_seconds"] = WAIT_SECONDS


def _as_integers(values: dict[str, Any]) -> None:
    """JSON Schema calls 3.0 an integer; here, as with OctoStore, an integer is written without a point."""
    for name, value in values.items():
        if isinstance(value, float) and value.is_integer():
            values[name] = int(value)
