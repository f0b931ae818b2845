"""The session of an agent's process: opened by its first claim, renewed while it lives, resumed after a restart."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from holdfast.client.lease_memory import JOB, RESERVATION, TASK, LeaseMemory, SessionSecret
from holdfast.transport.http.request import encode
from holdfast.transport.mcp.arguments import ACCEPT, JSON
from holdfast.transport.mcp.in_process import Sender, ToolRequest, ToolResponse
from holdfast.transport.mcp.results import FIRST_ERROR_STATUS, parse_response

Answer = tuple[ToolResponse, dict[str, Any]]

SESSIONS, BEGIN, CLOSE = "/v1/sessions", "begin_session", "close_session"
_SESSION_WRITES = ("heartbeat_session", "write_context")
TAKEN = "session_taken"
OVER = frozenset({"session_not_found", "session_expired", "lease_lost"})
"""Refusals of a renewal, or of a claim for the session, that mean that the session is over."""
SERVER_ERROR = 500
"""This HTTP status and every larger one may pass: the same request may succeed later."""
_NO_ANSWER = 504
NAME_LIMIT = 200
"""Characters of the owner that the name of its session has."""
_IDS = {"jobs": (JOB, "job_id", "lease_id"), "tasks": (TASK, "id", "leaseId")}
_HELD = _IDS | {"reservations": (RESERVATION, "reservation_id", "lease_id")}
"""Where the answer that resumes a session has the kind, the id and the new lease id of what the session holds."""


class Proof(NamedTuple):
    """What a claim for the session sends."""

    session_id: str
    lease_id: str


class AgentSession:
    """The session of one agent. Requests about it are sent one at a time."""

    def __init__(self, sender: Sender, memory: LeaseMemory, seconds: int) -> None:
        self._sender = sender
        self._memory = memory
        self.seconds = seconds
        self._lock = asyncio.Lock()
        self.proof: Proof | None = None
        """None while it is not open."""
        self.held: list[tuple[str, str]] = []
        """(kind, id) of what it held when it was opened or resumed."""

    async def open(self) -> ToolResponse | None:
        """Open or resume the session, unless it is open; returns the refusal, if there is one."""
        async with self._lock:
            return None if self.proof is not None else await self._begin()

    async def resume(self) -> bool:
        """Resume the session of the agent's last process, if it had one; whether there is nothing left to resume."""
        async with self._lock:
            if self.proof is not None or self._memory.session() is None:
                return True
            refusal = await self._begin()
            return refusal is None or refusal.status < SERVER_ERROR

    async def renew(self) -> bool:
        """Renew the session and what it holds; False if the server did not answer. `proof` is None if it is over."""
        async with self._lock:
            if self.proof is None:
                return True
            response, document = await _renew(self._sender, self.proof, self.seconds)
            if document.get("error") in OVER:
                self.proof = None
            return response.status < SERVER_ERROR

    def drop(self, proof: Proof) -> bool:
        """Take note that the session is over for which this proof was sent, unless it was opened again since."""
        is_current = self.proof == proof
        if is_current:
            self.proof = None
        return is_current

    def secret(self) -> str | None:
        """The secret of the session, while it is open."""
        known = None if self.proof is None else self._memory.session()
        return None if known is None else known.secret

    async def _begin(self) -> ToolResponse | None:
        known = self._memory.session()
        name = f"mcp:{self._memory.owner[:NAME_LIMIT]}" if known is None else known.name
        response, document = await self._begin_as(name, known)
        if document.get("error") == TAKEN:  # an agent on another machine has this name, or the store is another one
            name, known = f"mcp:{self._memory.owner[:NAME_LIMIT]}-{secrets.token_hex(3)}", None
            response, document = await self._begin_as(name, None)
        if response.status >= FIRST_ERROR_STATUS:
            return response
        secret = document.get("secret") or (known.secret if known is not None else "")
        self._memory.remember_session(SessionSecret(name, secret))
        self.held = []
        for field, (kind, id_field, lease_field) in _HELD.items():
            for held in document[field]:
                self._memory.reissue(kind, held[id_field], held[lease_field], self.seconds)
                self.held.append((kind, held[id_field]))
        self.proof = Proof(document["session_id"], document["lease_id"])
        return None

    async def _begin_as(self, name: str, known: SessionSecret | None) -> Answer:
        body: dict[str, Any] = {"name": name, "ttl_seconds": self.seconds}
        return await self._post(SESSIONS, body if known is None else body | {"secret": known.secret})

    async def _post(self, path: str, body: dict[str, Any]) -> Answer:
        return await _post(self._sender, path, body)


class OtherSessions:
    """Sessions that the model opened itself through this process: they are renewed like the agent's own."""

    def __init__(self, sender: Sender, seconds: int) -> None:
        self._sender = sender
        self._seconds = seconds
        self._open: dict[str, str] = {}
        """The lease id of each by its id."""

    def completed(self, request: ToolRequest) -> ToolRequest:
        """The request; a session that it opens lasts as long as the agent's own, and its lease id is remembered."""
        if request.operation not in {BEGIN, CLOSE, *_SESSION_WRITES}:
            return request
        body = msgspec.json.decode(request.body or b"{}")
        lease_id = self._open.get(_session_id(request))
        if request.operation == BEGIN:
            body["ttl_seconds"] = self._seconds
        elif lease_id is not None:
            body.setdefault("lease_id", lease_id)
        return replace(request, body=encode(body))

    def learn(self, request: ToolRequest, response: ToolResponse) -> None:
        """Take note of a session that was opened, resumed or closed."""
        if response.status >= FIRST_ERROR_STATUS:
            return
        if request.operation == BEGIN:
            _, document = parse_response(response)
            self._open[document["session_id"]] = document["lease_id"]
        elif request.operation == CLOSE:
            self._open.pop(_session_id(request), None)

    async def renew(self) -> None:
        """Renew all of them; one that is over is forgotten."""
        for session_id, lease_id in list(self._open.items()):
            _, document = await _renew(self._sender, Proof(session_id, lease_id), self._seconds)
            if document.get("error") in OVER and self._open.get(session_id) == lease_id:
                del self._open[session_id]


def _session_id(request: ToolRequest) -> str:
    """The id in the path; empty for a request that opens a session."""
    return "/".join(request.path.split("/")[3:4])


async def _renew(sender: Sender, proof: Proof, seconds: int) -> Answer:
    """Renew a session, early enough given up for another attempt: this one's connection may be broken."""
    try:
        async with asyncio.timeout(seconds / 6):
            return await _post(sender, f"{SESSIONS}/{proof.session_id}/heartbeat", {"lease_id": proof.lease_id})
    except TimeoutError:
        return ToolResponse(_NO_ANSWER, b"{}"), {}


async def _post(sender: Sender, path: str, body: dict[str, Any]) -> Answer:
    return parse_response(await sender.send(ToolRequest("POST", path, "", (ACCEPT, JSON), encode(body))))
