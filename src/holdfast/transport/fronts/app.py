"""The application of a front: frequent operations are handled here, all other requests are forwarded to the engine."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.transport.fronts.forwarding import Forwarder
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import HttpRefusal, Receive, Scope, Send
from holdfast.transport.http.routing import Router

HANDLED = {
    "claim_job",
    "heartbeat_job",
    "release_job",
    "create_task",
    "claim_task",
    "claim_task_by_id",
    "heartbeat",
    "complete_task",
    "fail_task",
    "release_task",
    "batch_tasks",
    "heartbeat_leases",
    "acquire_lock",
    "renew_lock",
    "release_lock",
}
"""Operations that a front handles: a body, one command, an answer."""
FORWARDED_IF = (b"wait_seconds", b"idempotency", b"\\u")
"""Requests with one of these in their body may wait, or have a stored answer: the engine process handles them."""


class FrontApp:
    """Answers one request here, or has the engine process answer it."""

    def __init__(self, ctx: HandlerContext, forwarder: Forwarder) -> None:
        self._app = App(ctx)
        self._forwarder = forwarder
        self._router = Router()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            first = await receive()
            replayed = _Replayed(first, receive)
            if self._is_handled(scope, first):
                await self._app(scope, replayed, send)
            else:
                await self._forward(scope, replayed, send)

    def _is_handled(self, scope: Scope, first: MutableMapping[str, Any]) -> bool:
        if scope["method"] != "POST" or first["type"] != "http.request" or first.get("more_body", False):
            return False
        if any(name == b"idempotency-key" for name, _ in scope["headers"]):
            return False
        body = first.get("body", b"")
        if any(part in body for part in FORWARDED_IF):
            return False
        try:
            operation, _ = self._router.find("POST", scope["raw_path"])
        except HttpRefusal:
            return False
        return operation.name in HANDLED

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._forwarder.forward(scope, receive, send)
        except (StoreUnavailable, OutcomeUnknown) as error:
            await self._app.refuse(scope, receive, send, error)


class _Replayed:
    """Receives the first message again, then the others."""

    __slots__ = ("_first", "_receive")

    def __init__(self, first: MutableMapping[str, Any], receive: Receive) -> None:
        self._first: MutableMapping[str, Any] | None = first
        self._receive = receive

    async def __call__(self) -> MutableMapping[str, Any]:
        if self._first is None:
            return await self._receive()
        first, self._first = self._first, None
        return first
