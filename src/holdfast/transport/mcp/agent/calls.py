"""Tool calls of an agent, completed with what the model left out: its name, its session and its lease ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlencode

import msgspec
from msgspec.structs import replace

from holdfast.client.lease_memory import JOB, RESERVATION, LeaseMemory
from holdfast.core.errors import Invalid
from holdfast.operations.bounds import CHECKED_LEASES
from holdfast.transport.http.request import encode
from holdfast.transport.lease_uses import CLAIMS, HOLDERS, Use, remember_claim, remember_write
from holdfast.transport.mcp.agent.session import OVER, AgentSession, Proof
from holdfast.transport.mcp.in_process import Sender, ToolRequest, ToolResponse
from holdfast.transport.mcp.results import FIRST_ERROR_STATUS, parse_response
from holdfast.transport.mcp.tool_schema import SESSION_SECRET

Body = dict[str, Any]

LOST = frozenset({"lease_lost", "lease_superseded", "lease_expired"})
"""Refusals that mean that a lease is over."""
RENEWAL = "This program renews it every {} s while it runs: a heartbeat is needed only to leave a checkpoint or a note."
_LEASE_TIMES = {
    **dict.fromkeys(("claim_job", "claim_any_job", "reserve_files", "claim_reservation"), "ttl_seconds"),
    **dict.fromkeys(("claim_task", "claim_task_by_id"), "lease_duration_seconds"),
}
_RENEWALS = frozenset({"heartbeat_job", "heartbeat_reservation"})
"""Writes that may change how long a lease lasts."""


class AgentCalls:
    """Sends the tool calls of one agent. `note_loss` is called when its session turns out to be over."""

    def __init__(
        self,
        sender: Sender,
        memory: LeaseMemory,
        session: AgentSession,
        note_loss: Callable[[str], None],
    ) -> None:
        self._sender = sender
        self._memory = memory
        self._session = session
        self._note_loss = note_loss

    async def send(self, request: ToolRequest) -> ToolResponse:
        """Complete the request and send it; raises Invalid if a lease id is missing that nobody knows."""
        name = request.operation
        if name in CLAIMS:
            return await self._claim(request, CLAIMS[name])
        if name in HOLDERS:
            return await self._write(request, HOLDERS[name])
        if name == "check_files":
            return await self._sender.send(self._with_own_reservations(request))
        if name == "list_mine":
            return self._with_lease_ids(await self._sender.send(self._about_own_session(request)))
        return await self._sender.send(request)

    # -- claims ----------------------------------------------------------------------------------------------

    async def _claim(self, request: ToolRequest, use: Use) -> ToolResponse:
        """Claim for the agent's session, unless the model names another one."""
        body = {use.owner_field: self._memory.owner} | _decode(request.body)
        if body.get("session_id") is not None:
            response, answer = parse_response(await self._sender.send(replace(request, body=encode(body))))
        else:
            response, answer = await self._claim_for_session(request, body)
        if response.status < FIRST_ERROR_STATUS:
            remember_claim(self._memory, use, answer)
        return response

    async def _claim_for_session(self, request: ToolRequest, body: Body) -> tuple[ToolResponse, Body]:
        bound = replace(request, body=encode(self._with_lasting_lease(request.operation, body)))
        response, answer, proof = await self._claim_once(bound)
        if proof is not None and answer.get("error") in OVER:
            if self._session.drop(proof):
                self._note_loss("Your session had ended.")
            response, answer, _ = await self._claim_once(bound)
        if response.status < FIRST_ERROR_STATUS and ("lease_id" in answer or "leaseId" in answer):
            answer["renewal"] = RENEWAL.format(self._session.seconds // 3)
            response = replace(response, body=encode(answer))
        return response, answer

    async def _claim_once(self, request: ToolRequest) -> tuple[ToolResponse, Body, Proof | None]:
        """Claim for the session, which is opened first; (response, its document, the proof that was sent)."""
        refusal = await self._session.open()
        proof = self._session.proof
        if refusal is not None or proof is None:
            assert refusal is not None
            return *parse_response(refusal), None
        body = _decode(request.body) | {"session_id": proof.session_id, "session_lease_id": proof.lease_id}
        return *parse_response(await self._sender.send(replace(request, body=encode(body)))), proof

    def _with_lasting_lease(self, operation: str, body: Body) -> Body:
        """A lease lasts at least as long as the session: it would end between two renewals otherwise."""
        field = _LEASE_TIMES[operation]
        given = body.get(field)
        if given is not None and (not isinstance(given, int | float) or given >= self._session.seconds):
            return body
        return body | {field: self._session.seconds}

    # -- writes of a holder ----------------------------------------------------------------------------------

    async def _write(self, request: ToolRequest, use: Use) -> ToolResponse:
        """A write of a holder, with the lease id by which this agent holds it now."""
        row_id, body = _subject(request, use), _decode(request.body)
        given = body.get("lease_id")
        lease_id = self._memory.find_current(use.kind, row_id, given) if given else self._memory.find(use.kind, row_id)
        if lease_id is None:
            known = "my_work lists what you hold"
            message = f"`leaseId` is required: you have not claimed the {use.kind} {row_id!r} here; {known}"
            raise Invalid(message, [{"pointer": "/leaseId", "code": "missing", "message": message}])
        if given and lease_id != given:  # the model has the lease id and the token from before a restart
            body = {name: value for name, value in body.items() if name not in {"token", "fencing_token"}}
        body["lease_id"] = lease_id
        if request.operation in _RENEWALS and isinstance(body.get("ttl_seconds"), int):
            body["ttl_seconds"] = max(body["ttl_seconds"], self._session.seconds)
        response, answer = parse_response(await self._sender.send(replace(request, body=encode(body))))
        if response.status < FIRST_ERROR_STATUS:
            remember_write(self._memory, use, row_id, lease_id, answer)
        elif answer.get("error") in LOST:
            self._memory.forget(use.kind, row_id, lease_id)
        return response

    # -- reads -----------------------------------------------------------------------------------------------

    def _with_own_reservations(self, request: ToolRequest) -> ToolRequest:
        """Ask who owns files with the lease ids of this agent's reservations, so that they count as its own."""
        body = _decode(request.body)
        if body.get("lease_ids") is not None:
            return request
        own = [entry.lease_id for (kind, _), entry in self._memory.all().items() if kind == RESERVATION]
        return replace(request, body=encode(body | {"lease_ids": own[: CHECKED_LEASES.most]}))

    def _about_own_session(self, request: ToolRequest) -> ToolRequest:
        """Ask for what this agent's session holds, with its lease ids; before its first claim, by the agent's name."""
        if "session_id=" in request.query or "owner=" in request.query:
            return request
        proof, secret = self._session.proof, self._session.secret()
        if proof is None or secret is None:
            return replace(request, query=_joined(request.query, owner=self._memory.owner))
        headers = (*request.headers, (SESSION_SECRET.lower().encode(), secret.encode()))
        return replace(request, query=_joined(request.query, session_id=proof.session_id), headers=headers)

    def _with_lease_ids(self, response: ToolResponse) -> ToolResponse:
        """The list of what the agent holds, with the lease ids that it remembers."""
        response, document = parse_response(response)
        if response.status >= FIRST_ERROR_STATUS:
            return response
        for held in document["held"]:
            known = self._memory.find(held["kind"], held["id"])
            if known is not None and held.get("lease_id") is None:
                held["lease_id"] = known
                held.pop("lease_id_missing", None)
        return replace(response, body=encode(document))


def _decode(body: bytes) -> Body:
    found: Body = msgspec.json.decode(body or b"{}")
    return found


def _subject(request: ToolRequest, use: Use) -> str:
    """The id in the path. Ids of jobs are stored in Unicode's normal form C."""
    row_id = unquote(request.path.split("/")[3])
    return unicodedata.normalize("NFC", row_id) if use.kind == JOB else row_id


def _joined(query: str, **more: str) -> str:
    return "&".join(part for part in (query, urlencode(more)) if part)
