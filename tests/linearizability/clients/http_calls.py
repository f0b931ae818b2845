"""Calls as HTTP requests, and responses as answers."""

from __future__ import annotations

import http.client
import json
import random
from datetime import datetime
from typing import Any

from holdfast.transport.http.api.sessions import session_id_of
from tests.linearizability.history import Call, proof_of

CREATIONS = {"create_task", "reserve"}
SECOND = 1_000_000
TIMEOUT_SECONDS = 4.0
CUT_RATE = 0.01
LOST = {"lease_lost", "lease_expired", "lease_superseded", "invalid_transition"}
OVER = {"session_expired", "session_not_found"}
VERBS = {
    "heartbeat": "renewed",
    "complete": "completed",
    "fail": "failed",
    "release": "released",
    "withdraw": "withdrawn",
}


def session_of(group: str) -> str:
    """The id of the session of a group."""
    return session_id_of("default", f"{group}-session")


class HttpSender:
    """One client with one connection; now and then it closes the connection before the answer has come."""

    def __init__(self, port: int, key: str, rng: random.Random, *, cuts_creations: bool) -> None:
        self._port = port
        self._key = key
        self._rng = rng
        self._cuts_creations = cuts_creations
        """Whether it also cuts calls that create tasks or reservations, whose ids are then known from the log alone."""
        self._connection: http.client.HTTPConnection | None = None

    def send(self, call: Call) -> dict[str, Any] | None:
        """The answer to the call; None if none came."""
        method, path, body = request_of(call)
        headers = {"Authorization": f"Bearer {self._key}", "X-Request-Id": call.id}
        sent = None if body is None else json.dumps(body)
        if sent is not None:
            headers["Content-Type"] = "application/json"
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
            try:
                self._connection.connect()
            except OSError:  # nothing was sent
                self.close()
                return {"is": "unavailable"}
        try:
            self._connection.request(method, path, sent, headers)
            if self._rng.random() < CUT_RATE and (self._cuts_creations or call.verb not in CREATIONS):
                self.close()
                return None
            response = self._connection.getresponse()
            found = json.loads(response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            return None
        if response.will_close:
            self.close()
        return answer_of(call, response.status, found)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


Sent = tuple[str, str, dict[str, Any] | None]


def request_of(call: Call) -> Sent:
    """(method, path, body) of a call."""
    if call.verb in _REQUESTS:
        return _REQUESTS[call.verb](call)
    verb, _, noun = call.verb.partition("_")
    args = call.args
    if verb == "read":
        return "GET", f"/v1/{noun}s/{args[noun]}", None
    result = {"result": json.loads(args["result"])} if "result" in args else {}
    if result and noun == "job":
        result |= {"outcome": "done", "done_for_seconds": None}
    paths = {"paths": args["paths"]} if "paths" in args else {}
    path = f"/v1/{noun}s/{args[noun]}/{'withdraw-offer' if verb == 'withdraw' else verb}"
    at_once = {"retry_after_seconds": 0} if verb == "fail" else {}  # the model has no delays
    return "POST", path, {"lease_id": args["lease_id"], **result, **paths, **at_once}


def _claim_job(call: Call) -> Sent:
    body = {"owner": call.args["owner"], "ttl_seconds": call.args["ttl"] // SECOND, **_for_session(call)}
    body["again"] = call.args["again"]
    if "code" in call.args:
        body["offer"] = call.args["code"]
    return "POST", f"/v1/jobs/{call.args['job']}/claim", body


def _offer(call: Call) -> Sent:
    noun = call.verb.removeprefix("offer_")
    body = {"lease_id": call.args["lease_id"], "expires_in_seconds": call.args["lasts"] // SECOND}
    return "POST", f"/v1/{noun}s/{call.args[noun]}/offer", body


def _reserve(call: Call) -> Sent:
    asked = {name: call.args[name] for name in ("space", "paths", "mode", "owner")}
    return "POST", "/v1/reservations", asked | {"ttl_seconds": call.args["ttl"] // SECOND, **_for_session(call)}


def _take_reservation(call: Call) -> Sent:
    asked = {"owner": call.args["owner"], "offer": call.args["code"], "ttl_seconds": call.args["ttl"] // SECOND}
    return "POST", f"/v1/reservations/{call.args['reservation']}/claim", asked | _for_session(call)


def _claim_task(call: Call) -> Sent:
    body = {"worker_id": call.args["owner"], **_for_session(call)}
    if "code" in call.args:
        return "POST", f"/v1/tasks/{call.args['task']}/claim", body | {"offer": call.args["code"]}
    return "POST", "/v1/tasks/claim", body | {"type": call.args["queue"]}


def _for_session(call: Call) -> dict[str, Any]:
    if call.args.get("session") is None:
        return {}
    return {"session_id": call.args["session"], "session_lease_id": call.args["session_lease_id"]}


def _create_task(call: Call) -> Sent:
    limits = {"maxAttempts": call.args["max_attempts"], "leaseDurationSeconds": call.args["ttl"] // SECOND}
    return "POST", "/v1/tasks", {"type": call.args["queue"], "payload": {}, **limits}


def _open_session(call: Call) -> Sent:
    body = {"name": f"{call.group}-session", "ttl_seconds": call.args["ttl"] // SECOND}
    return "POST", "/v1/sessions", body if call.args["given"] is None else body | {"secret": call.args["given"]}


def _end_session(call: Call) -> Sent:
    return "DELETE", f"/v1/sessions/{call.args['session']}", {"lease_id": call.args["lease_id"]}


_REQUESTS = {
    "claim_job": _claim_job,
    "claim_task": _claim_task,
    **{f"offer_{noun}": _offer for noun in ("job", "task", "reservation")},
    "reserve": _reserve,
    "take_reservation": _take_reservation,
    "create_task": _create_task,
    "open_session": _open_session,
    "end_session": _end_session,
}


def answer_of(call: Call, status: int, body: dict[str, Any]) -> dict[str, Any] | None:
    """The answer that a response is; None if it says that the outcome is unknown."""
    if status == 503:
        return None if body["applied"] == "unknown" else {"is": "unavailable"}
    if status >= 400:
        return _refusal(call, body)
    if call.verb in _ANSWERS:
        return _ANSWERS[call.verb](call, body)
    verb, _, noun = call.verb.partition("_")
    if noun == "task":
        return {"is": VERBS[verb], "state": body["status"]}
    return {"is": VERBS[verb], "expires_at": _instant(body.get("expires_at"))}


def _granted_task(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    if "code" not in call.args and body["task"] is None:
        return {"is": "empty"}
    ids = {"task": body["id"], "lease_id": body["leaseId"], "proof": proof_of(body["leaseId"])}
    return {"is": "granted", **ids, "token": body["fencingToken"], "attempt": body["attempt"]}


def _created_task(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    call.args["task"] = body["id"]
    return {"is": "created", "state": body["status"]}


def _refusal(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    code = body["error"]
    if code == "task_not_found" and call.verb == "read_task":
        return {"is": "absent"}
    if code == "reservation_not_found" and call.verb == "read_reservation":
        return {"is": "absent"}
    if code == "invalid_request" and call.verb == "release_reservation":
        return {"is": "not_reserved"}
    if code == "session_not_found" and call.verb == "read_session":
        return {"is": "over", "generation": 0, "held": []}
    if code in LOST:
        return {"is": "lost", "held_by": body.get("held_by")}
    known = {"session_taken": "taken", "offer_refused": "offer_refused"}.get(code)
    known = "session_over" if code in OVER else known
    assert known is not None, f"{call}: {body}"
    return {"is": known}


def _granted_job(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    if body["status"] == "done":
        return _done(body)
    until = _instant(body["expires_at"])
    if body["status"] == "held":
        return {"is": "held", "owner": body["owner"], "expires_at": until}
    ids = {"lease_id": body["lease_id"], "proof": proof_of(body["lease_id"]), "token": body["token"]}
    return {"is": "granted", **ids, "expires_at": until, "now": _instant(body["claimed_at"])}


def _offered(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    call.args["code_proof"] = proof_of(body["offer"])
    return {"is": "offered", "expires_at": _instant(body.get("expires_at")), "code": body["offer"]}


def _reserved(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    if body["status"] == "held":
        return {"is": "held", "owners": [conflict["owner"] for conflict in body["conflicts"]]}
    if call.verb == "extend_reservation":
        return {"is": "extended", "expires_at": _instant(body["expires_at"])}
    call.args["reservation"] = body["reservation_id"]
    ids = {"lease_id": body["lease_id"], "proof": proof_of(body["lease_id"]), "token": body["token"]}
    times = {"expires_at": _instant(body["expires_at"]), "now": _instant(body["reserved_at"])}
    return {"is": "granted", **ids, **times}


def _read_reservation(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    if body["status"] == "ended":
        return {"is": "ended"}
    shown = {name: body[name] for name in ("owner", "paths")}
    return {"is": "reserved", **shown, "expires_at": _instant(body["expires_at"])}


def _done(body: dict[str, Any]) -> dict[str, Any]:
    return {"is": "done", "result": json.dumps(body["result"])}


def _begun(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    if "secret" in body:
        call.args["fresh_secret"] = proof_of(body["secret"])
    lease_ids = {f"job:{job['job_id']}": job["lease_id"] for job in body["jobs"]}
    lease_ids |= {f"task:{task['id']}": task["leaseId"] for task in body["tasks"]}
    lease_ids |= {f"reservation:{row['reservation_id']}": row["lease_id"] for row in body["reservations"]}
    tokens = {f"job:{job['job_id']}": job["token"] for job in body["jobs"]}
    tokens |= {f"task:{task['id']}": task["fencingToken"] for task in body["tasks"]}
    tokens |= {f"reservation:{row['reservation_id']}": row["token"] for row in body["reservations"]}
    holds = {place: {"proof": proof_of(lease_ids[place]), "token": tokens[place]} for place in lease_ids}
    ids = {"lease_id": body["lease_id"], "proof": proof_of(body["lease_id"]), "token": body["token"]}
    shown = {"expires_at": _instant(body["expires_at"]), "now": _instant(body["opened_at"])}
    more = {"lease_ids": lease_ids, "secret": body.get("secret"), "generation": body["generation"]}
    return {"is": "opened", **ids, **shown, **more, "holds": holds}


def _read_task(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    result = None if body["result"] is None else json.dumps(body["result"], separators=(",", ":"))
    return {"is": body["status"], "attempt": None, "result": result}


def _read_session(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    is_live, held = body["status"] == "live", sorted(job["job_id"] for job in body["jobs"])
    return {"is": "live" if is_live else "over", "generation": body["generation"], "held": held}


def _read_job(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    if body["status"] == "free":
        return {"is": "free"}
    if body["status"] == "done":
        return _done(body)
    return {"is": "claimed", "owner": body["owner"], "expires_at": _instant(body["expires_at"])}


_ANSWERS = {
    "claim_job": _granted_job,
    "claim_task": _granted_task,
    **{f"offer_{noun}": _offered for noun in ("job", "task", "reservation")},
    "reserve": _reserved,
    "take_reservation": _reserved,
    "extend_reservation": _reserved,
    "read_reservation": _read_reservation,
    "create_task": _created_task,
    "open_session": _begun,
    "end_session": lambda call, body: {"is": "ended"},
    "read_job": _read_job,
    "read_task": _read_task,
    "read_session": _read_session,
}


def _instant(text: str | None) -> int | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * SECOND + moment.microsecond
