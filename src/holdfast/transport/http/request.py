"""Requests and responses of the HTTP API."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.core.acl import hash_token
from holdfast.core.errors import HoldfastError, Overloaded
from holdfast.core.event import Cause
from holdfast.core.principal import ADMIN_ID
from holdfast.core.trace import traceparent
from holdfast.engine.command import Replayed
from holdfast.operations.operation import HOLDFAST_API, ORCHESTRION, Operation
from holdfast.transport.ids import ids

if TYPE_CHECKING:
    from holdfast.core.plan import Allowance
    from holdfast.core.principal import Principal
    from holdfast.transport.http.access.rate_limits import RateBudget
    from holdfast.transport.http.overload.byte_budget import ByteBudget
    from holdfast.transport.http.overload.concurrency_limit import ConcurrencyLimit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]
Render = Callable[[Any], tuple[int, bytes]]
"""Status and body of an outcome."""

SEND_WHOLE = "holdfast.send_whole"
"""Key of the ASGI scope: sends status, header fields and body in one step, or returns False."""

CALLER_GONE = 499
"""Status of a request whose caller has disconnected; only the access log and callers in this process see it."""

CREDENTIALS = (b"authorization", b"x-admin-key", b"x-octostore-admin-key")
"""Headers with a credential."""

_CLIENT_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")

encode = msgspec.json.Encoder().encode


class HttpRefusal(HoldfastError):
    """Refused by the HTTP layer, before any rule of the core was applied."""

    def __init__(self, status: int, message: str, *, headers: tuple[Header, ...] = (), close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.close = close


class Parts(Protocol):
    """A body sent in parts; closing it releases what it holds."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The parts, in order."""

    async def aclose(self) -> None:
        """Stop; the remaining parts are not needed."""


class Response(msgspec.Struct):
    """Status, headers, and a body in one piece or in parts."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = b"application/json"
    parts: Parts | None = None
    """A body of unknown length instead of `body`; it is closed when the caller disconnects."""


def json_response(status: int, document: Any, headers: tuple[Header, ...] = ()) -> Response:
    """A compact JSON answer."""
    return Response(status, encode(document), headers)


def answer(outcome: Any, render: Render) -> Response:
    """Render the outcome of a command, or repeat the stored answer of an idempotent request."""
    if isinstance(outcome, Replayed):
        return Response(outcome.status, outcome.body, ((b"idempotency-replayed", b"true"),))
    status, body = render(outcome)
    return Response(status, body)


def raw_json(text: str | None) -> msgspec.Raw | None:
    """Stored JSON text, to be put into a document without decoding it."""
    return None if text is None else msgspec.Raw(text.encode())


def with_warnings(document: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """The document, with the warnings about its request if there are any."""
    return document | {"warnings": warnings} if warnings else document


class Request:
    """One request. Its body is read when a handler calls `body`.

    What most requests do not set is an attribute of the class: setting all for each one took a microsecond.
    """

    operation: Operation | None = None
    parameter = ""
    principal: Principal | None = None
    secret = b""
    """The credential as it was sent."""
    traceparent = ""
    """The trace context: as the caller sent it, or of the span that this server began for it."""
    is_waiting = False
    """Whether the request waits on purpose: then a long duration is not logged as slow."""
    allowance: Allowance | None = None
    """What the caller's plan allows; set when it is authenticated."""
    rate_budget: RateBudget | None = None
    """The budget that was charged last."""
    charges: tuple[tuple[RateBudget, int], ...] = ()
    """Every charge: the budget and the cost."""
    refusal: HoldfastError | None = None
    """Why the caller is not identified, if its key was checked before the body was read."""
    body_budget: ByteBudget | None = None
    """The budget of all bodies that arrive in several pieces."""
    body_owner = ""
    body_bytes = 0
    """What this request took from that budget."""
    concurrency_limit: ConcurrencyLimit | None = None
    """The limit of its kind of caller, while it takes one of its places."""
    place_owner = ""
    """The account that it takes this place for."""
    may_begin_work = True
    """Whether the request may do more than a holder does; False if it was admitted for holders' writes only."""
    can_register = False
    """Whether a caller without a key may create an account here; set before an error is rendered."""
    repeated_credential: str | None = None
    """A header with a credential that was sent more than once."""
    must_close = False
    """Whether the connection must be closed after the answer, because the rest of the body is not read."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        if len(self.headers) != len(scope["headers"]):
            self.repeated_credential = _find_repeated_credential(scope["headers"])
        self.request_id = ids.request_id()
        sent = self.headers.get(b"traceparent")
        if sent is not None:
            self.traceparent = traceparent(sent.decode("latin-1"))

    def route(self, operation: Operation, parameter: str) -> None:
        """Record the operation. The routes under `/v1` keep a request id that the client chose."""
        self.operation = operation
        self.parameter = parameter
        if operation.family in {HOLDFAST_API, ORCHESTRION}:
            chosen = self.headers.get(b"x-request-id")
            if chosen is not None and _CLIENT_REQUEST_ID.fullmatch(chosen):
                self.request_id = chosen.decode()

    @property
    def by(self) -> Principal:
        """The authenticated caller; present in every operation with a scope."""
        assert self.principal is not None
        return self.principal

    @property
    def key_hash(self) -> str:
        """Hash of the key that was sent; empty for the admin key, which is in the settings and has no row."""
        return "" if self.by.id == ADMIN_ID else hash_token(self.secret.decode("latin-1"))

    def cause(self) -> Cause:
        """Who caused a change, for the event log."""
        return Cause(self.principal.id if self.principal else "anonymous", self.request_id, self.traceparent)

    def refund(self) -> None:
        """Return everything this request was charged."""
        for budget, cost in self.charges:
            budget.remaining += cost
        self.charges = ()

    def begin_wait(self) -> None:
        """Note that the request waits on purpose: it leaves its place to others."""
        self.is_waiting = True
        self.leave_place()

    def take_place(self, limit: ConcurrencyLimit, owner: str) -> None:
        """Take one of the limit's places for an account."""
        limit.take(owner)
        self.concurrency_limit, self.place_owner = limit, owner

    def leave_place(self) -> None:
        """Give up its place, if it still has one."""
        if self.concurrency_limit is not None:
            self.concurrency_limit.give_back(self.place_owner)
            self.concurrency_limit = None

    async def body(self, limit: int) -> bytes:
        """The whole body, within its limit. The protocol limits how long it may take."""
        expected = self.declared_bytes
        if expected > limit:
            raise self._too_large(limit)
        piece, more = _piece(await self.receive())
        if not more and len(piece) <= limit:  # the usual case: the body arrived with the head
            return piece
        pieces, size = [piece], len(piece)
        self._take_budget(expected)
        while more and size <= limit:
            piece, more = _piece(await self.receive())
            pieces.append(piece)
            size += len(piece)
            self._take_budget(size)
        if size > limit:
            raise self._too_large(limit)
        return b"".join(pieces)

    @property
    def declared_bytes(self) -> int:
        """The size of the body according to the head; 0 if the head does not say."""
        declared = self.headers.get(b"content-length", b"")
        return int(declared) if declared.isdigit() else 0

    def _take_budget(self, size: int) -> None:
        """Take what a body needs up to `size` from the budget of all bodies, or refuse the request."""
        if self.body_budget is None or size <= self.body_bytes:
            return
        if not self.body_bytes:
            self.body_owner = self.principal.account if self.principal else ""
        if not self.body_budget.take(self.body_owner, size - self.body_bytes):
            self.must_close = True
            raise Overloaded("too many large request bodies are being received")
        self.body_bytes = size

    def _too_large(self, limit: int) -> HttpRefusal:
        self.must_close = True
        return HttpRefusal(413, f"the body is larger than {limit} bytes", close=True)

    def forget_body(self) -> None:
        """Give back what the body took from the budget; called when the request is answered."""
        if self.body_bytes and self.body_budget is not None:
            self.body_budget.give_back(self.body_owner, self.body_bytes)
            self.body_bytes = 0


def _find_repeated_credential(headers: Iterable[Header]) -> str | None:
    names = [name for name, _ in headers]
    return next((name.decode() for name in CREDENTIALS if names.count(name) > 1), None)


def _piece(message: MutableMapping[str, Any]) -> tuple[bytes, bool]:
    """A piece of the body, and whether more follow."""
    if message["type"] == "http.disconnect":
        raise HttpRefusal(400, "the caller disconnected", close=True)
    return message.get("body", b""), message.get("more_body", False)


async def until_disconnected(request: Request) -> None:
    """Return when the caller has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def client_disconnected() -> HttpRefusal:
    """The refusal for a caller that has disconnected."""
    return HttpRefusal(CALLER_GONE, "the caller disconnected", close=True)
