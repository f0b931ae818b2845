"""Client for `/v1/jobs`, and checks of what every answer must contain."""

import json
import re
import socket
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from holdfast.core.errors import HoldfastError
from holdfast.transport.http.routing import Router
from tests.compat.octostore.expect import assert_agent_contract, instant
from tests.compat.octostore.server import ADMIN_KEY, TOKENS, Server
from tests.compat.octostore.wire import Answer, Caller

ROOT_KEY = "the-root-key-of-the-job-tests"
ABSENT_LEASE = "00000000-0000-4000-8000-000000000000"
CONTRACT_WORDS = {"fix_request", "authenticate", "stop_work", "continue_work", "ask_operator", "retry_after_wait"}
"""Actions that are no request of their own."""


@dataclass(frozen=True)
class Agent(Caller):
    """A caller with the verbs of the job API."""

    def claim(self, job: str, owner: str = "somebody", **fields: object) -> Answer:
        return self.post(job_path(job, "/claim"), {"owner": owner, **fields})

    def heartbeat(self, job: str, lease_id: str, **fields: object) -> Answer:
        return self.post(job_path(job, "/heartbeat"), {"lease_id": lease_id, **fields})

    def release_job(self, job: str, lease_id: str, **fields: object) -> Answer:
        return self.post(job_path(job, "/release"), {"lease_id": lease_id, **fields})

    def offer(self, job: str, lease_id: str, **fields: object) -> Answer:
        return self.post(job_path(job, "/offer"), {"lease_id": lease_id, **fields})

    def withdraw_offer(self, job: str, lease_id: str) -> Answer:
        return self.post(job_path(job, "/withdraw-offer"), {"lease_id": lease_id})

    def force_release(self, job: str, reason: str = "stuck", **fields: object) -> Answer:
        return self.post(job_path(job, "/force-release"), {"reason": reason, **fields})

    def owner_of(self, job: str) -> dict[str, Any]:
        return ok(self.get(job_path(job)))

    def jobs(self, query: str = "") -> dict[str, Any]:
        return ok(self.get(f"/v1/jobs{query}"))

    def under_key(self, key: str) -> "Agent":
        """The same agent, with an Idempotency-Key."""
        agent = self.with_headers(Idempotency_Key=key)
        assert isinstance(agent, Agent)
        return agent


def agent(server: Server, name: str = "alice-1") -> Agent:
    return Agent(server.port, {"Authorization": f"Bearer {TOKENS[name]}"}, name, TOKENS[name])


def root(server: Server) -> Agent:
    """The key with every scope; the server must have been given it as ROOT_KEY."""
    return Agent(server.port, {"Authorization": f"Bearer {ROOT_KEY}"}, "root", ROOT_KEY)


def admin(server: Server) -> Agent:
    return Agent(server.port, {"X-Admin-Key": ADMIN_KEY}, "admin", ADMIN_KEY)


def stranger(server: Server) -> Agent:
    return Agent(server.port)


def job_path(job: str, verb: str = "") -> str:
    return f"/v1/jobs/{quote(job, safe='/:@')}{verb}"


def fresh(prefix: str = "job") -> str:
    return f"{prefix}-{uuid.uuid4().hex}"


def wait_on_a_socket(server: Server, caller: Agent, job: str, owner: str) -> socket.socket:
    """A waiting claim whose connection can be cut."""
    body = json.dumps({"owner": owner, "wait_seconds": 30}).encode()
    head = f"POST {job_path(job, '/claim')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {caller.token}\r\n"
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


# -- assertions about answers ------------------------------------------------------------------------------------


def ok(answer: Answer) -> dict[str, Any]:
    """A success whose `agent_contract` advises existing operations."""
    assert answer.status == 200, str(answer)
    assert answer.header("Content-Type") == "application/json"
    return _document(answer)


def claimed(answer: Answer) -> dict[str, Any]:
    """The job is the caller's, and the answer has every promised field."""
    body = ok(answer)
    assert body["status"] == "claimed", body
    assert body.keys() >= {
        "job_id", "owner", "lease_id", "token", "claimed_at", "expires_at", "expires_in_seconds",
        "heartbeat_every_seconds", "metadata", "previous",
    }  # fmt: skip
    assert body["lease_id"] == str(uuid.UUID(body["lease_id"]))
    assert type(body["token"]) is int
    assert instant(body["claimed_at"]) < instant(body["expires_at"])
    assert 0 < body["heartbeat_every_seconds"] < body["expires_in_seconds"] + 1
    return body


def held(answer: Answer, by: str | None = None) -> dict[str, Any]:
    """Another caller holds the job: status 200 without a lease id."""
    body = ok(answer)
    assert body["status"] == "held", body
    assert body.keys() >= {
        "job_id", "owner", "metadata", "claimed_at", "expires_at", "expires_in_seconds", "retry_after_seconds",
        "waiting",
    }  # fmt: skip
    assert not body.keys() & {"lease_id", "token"}
    assert body["retry_after_seconds"] >= 1
    assert body["agent_contract"]["retryable"] is True
    assert by is None or body["owner"] == by
    return body


def problem(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """RFC 9457, with our own code, the request id and a next step."""
    assert answer.status == status, str(answer)
    assert answer.header("Content-Type") == "application/problem+json"
    body = _document(answer)
    assert body["type"] == f"urn:holdfast:problem:{code}"
    assert (body["status"], body["error"]) == (status, code)
    assert body["title"]
    assert body["detail"] == body["message"]
    assert body["request_id"] == answer.header("X-Request-Id")
    assert body["instance"].endswith(body["request_id"])
    return body


def lost(answer: Answer) -> dict[str, Any]:
    """No longer the caller's."""
    body = problem(answer, 409, "lease_lost")
    assert body["agent_contract"]["next_actions"][0]["action"] == "stop_work"
    assert not body.keys() & {"lease_id", "token"}
    return body


def pointers(body: dict[str, Any]) -> set[str]:
    """The pointers of the field errors in a refusal."""
    return {error["pointer"] for error in body["errors"]}


def unavailable(answer: Answer) -> dict[str, Any]:
    """503: the store or the server is unavailable; the answer says whether the request was applied."""
    body = problem(answer, 503, answer.json["error"])
    assert body["applied"] in {"no", "unknown"}
    assert int(answer.header("Retry-After") or 0) >= 1
    assert body["agent_contract"]["retryable"] is (body["applied"] == "no")
    return body


def _document(answer: Answer) -> dict[str, Any]:
    body = answer.json
    assert isinstance(body, dict)
    assert_agent_contract(body, error=answer.status >= 400)
    for step in body["agent_contract"]["next_actions"]:
        assert_leads_somewhere(step)
    return body


def assert_leads_somewhere(step: dict[str, Any]) -> None:
    """Each request that a contract advises exists in the table of operations, under that name."""
    if "endpoint" not in step:
        assert step["action"] in CONTRACT_WORDS, step
        return
    path = re.sub(r"\{[a-z_]+\}", "some-name", step["endpoint"]).partition("?")[0]
    try:
        operation, _ = Router().find(step["method"], path.encode())
    except HoldfastError as error:
        raise AssertionError(f"{step} leads nowhere: {error.message}") from None
    assert step["action"] in {operation.name, "retry_after_wait"}, step


# -- concurrent calls --------------------------------------------------------------------------------------------


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run these calls at the same time; what each returned, in order."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


class Callers:
    """Callers that wait, each in a thread of its own."""

    def __init__(self, size: int = 16) -> None:
        self._pool = ThreadPoolExecutor(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def send(self, call: Callable[..., Answer], *arguments: Any, **fields: Any) -> "Future[tuple[Answer, float]]":
        """Start a call; it gives (the answer, the moment it came)."""

        def run() -> tuple[Answer, float]:
            answer = call(*arguments, **fields)
            return answer, time.monotonic()

        return self._pool.submit(run)
