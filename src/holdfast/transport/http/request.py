"""A request as the door sees it, and a response as it leaves."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.event import Cause
from holdfast.core.trace import traceparent
from holdfast.engine.command import Replayed
from holdfast.operations.table import HOLDFAST_API, ORCHESTRION, Operation
from holdfast.transport.ids import ids

if TYPE_CHECKING:
    from holdfast.core.plan import Allowance
    from holdfast.core.principal import Principal
    from holdfast.transport.http.access.rate_limits import Purse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]
Render = Callable[[Any], tuple[int, bytes]]
"""Status and body of an outcome."""

_CLIENT_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")

encode = msgspec.json.Encoder().encode


class HttpRefusal(HoldfastError):
    """The door itself says no: the request never reached a rule."""

    def __init__(self, status: int, message: str, *, headers: tuple[Header, ...] = (), close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.close = close


class Parts(Protocol):
    """A body that comes in parts; closing it lets go of whatever it holds."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Part after part."""

    async def aclose(self) -> None:
        """No more of it is wanted."""


class Response(msgspec.Struct):
    """Status, body and what else goes in the head."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = b"application/json"
    parts: Parts | None = None
    """A body that comes bit by bit and may never end; it is closed when the caller goes away."""


def json_response(status: int, document: Any, headers: tuple[Header, ...] = ()) -> Response:
    """A compact JSON answer."""
    return Response(status, encode(document), headers)


def answer(outcome: Any, render: Render) -> Response:
    """Render what came of a command, or say again what was said the first time."""
    if isinstance(outcome, Replayed):
        return Response(outcome.status, outcome.body, ((b"idempotency-replayed", b"true"),))
    status, body = render(outcome)
    return Response(status, body)


def raw_json(text: str | None) -> msgspec.Raw | None:
    """JSON text as it is kept, for a document that shows it."""
    return None if text is None else msgspec.Raw(text.encode())


def warned(document: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The document, with what was odd about the request if anything was."""
    return document | {"warnings": warnings} if warnings else document


class Request:
    """One request. Its body is read when a handler asks for it."""

    __slots__ = (
        "allowance",
        "charges",
        "headers",
        "operation",
        "parameter",
        "patient",
        "principal",
        "purse",
        "receive",
        "request_id",
        "scope",
        "secret",
        "traceparent",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.operation: Operation | None = None
        self.parameter = ""
        self.principal: Principal | None = None
        self.secret = b""
        """The credential as it was sent."""
        self.request_id = ids.request_id()
        sent = self.headers.get(b"traceparent")
        self.traceparent = "" if sent is None else traceparent(sent.decode("latin-1"))
        """Where it belongs in a trace: its caller's word, or the span that this server gave it."""
        self.patient = False
        """Whether it asked to wait: then it is not slow."""
        self.allowance: Allowance | None = None
        """What the caller's account may do; known once it is authenticated."""
        self.purse: Purse | None = None
        """What this request was charged to last."""
        self.charges: list[tuple[Purse, int]] = []
        """All that it was charged, and to which purses."""

    def route(self, operation: Operation, parameter: str) -> None:
        """Note where it goes. Our own routes keep a request id that the client chose."""
        self.operation = operation
        self.parameter = parameter
        if operation.family in {HOLDFAST_API, ORCHESTRION}:
            chosen = self.headers.get(b"x-request-id")
            if chosen is not None and _CLIENT_REQUEST_ID.fullmatch(chosen):
                self.request_id = chosen.decode()

    @property
    def by(self) -> Principal:
        """Who is asking; handlers of scoped operations may rely on it."""
        assert self.principal is not None
        return self.principal

    def cause(self) -> Cause:
        """What the log says of who asked."""
        return Cause(self.principal.id if self.principal else "anonymous", self.request_id, self.traceparent)

    def give_back(self) -> None:
        """It costs nothing after all."""
        for purse, cost in self.charges:
            purse.left += cost
        self.charges = []

    async def body(self, limit: int) -> bytes:
        """The whole body, within its limit; how long it may take is the protocol's business."""
        declared = self.headers.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit:
            raise HttpRefusal(413, f"the body is larger than {limit} bytes", close=True)
        chunks: bytes = b""
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise HttpRefusal(400, "the caller went away", close=True)
            chunks += message.get("body", b"")
            if len(chunks) > limit:
                raise HttpRefusal(413, f"the body is larger than {limit} bytes", close=True)
            if not message.get("more_body"):
                return chunks
