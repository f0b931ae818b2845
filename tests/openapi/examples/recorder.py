"""Records a request and the answer of each operation, from calls of the application in this process.

The clock is driven, and every random value is replaced by one that depends only on its place, so that each recording
has the same bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from holdfast.billing.provider import Order, OrderRequest
from holdfast.core.purchase import Capture
from holdfast.core.row import SECOND
from holdfast.operations.table import OPERATIONS_BY_NAME
from holdfast.settings import load
from holdfast.store.memory.store import MemoryStore
from tests.compat.octostore.wire import NOTHING, STREAM
from tests.conformance import check_answer
from tests.http.in_process_app import InProcessApp
from tests.support import DrivenClock

START = 1_800_003_600 * SECOND
ADDRESS = "https://holdfast.example.com"
ADMIN_KEY = "the-operators-key-of-the-examples"
ROOT_KEY = "the-root-key-of-the-examples"
VARIABLES = {
    "HOLDFAST_REGISTRATION": "open",
    "HOLDFAST_LOCAL_REGISTRATION": "true",
    "HOLDFAST_ROOT_KEY": ROOT_KEY,
    "HOLDFAST_ADMIN_KEY": ADMIN_KEY,
    "HOLDFAST_PUBLIC_URL": ADDRESS,
}
ROOT = {"authorization": f"Bearer {ROOT_KEY}"}
Headers = Mapping[str, str]


class Recorder:
    """Calls operations by name. The first kept call of each is its example."""

    def __init__(self, variables: Mapping[str, str] = VARIABLES) -> None:
        self.clock = DrivenClock(START)
        settings, _ = load({"store": "memory:"}, variables)
        self._app = InProcessApp(settings, MemoryStore(self.clock))
        self._app.ctx.payments = ApprovedPayments()
        self._app.runner.run(self._open())
        self.recorded: dict[str, dict[str, Any]] = {}

    async def _open(self) -> None:
        self._app.ctx.open()

    def call(
        self,
        operation: str,
        body: Any = NOTHING,
        *,
        headers: Headers = ROOT,
        query: Mapping[str, Any] | None = None,
        keep: bool = True,
        shorten: Callable[[Any], Any] = lambda answer: answer,
        **path: str,
    ) -> Any:
        """The answer of one call, which must succeed and match its schema."""
        self.clock.advance(3)
        row = OPERATIONS_BY_NAME[operation]
        target = row.path.replace("...", "").format_map({name: quote(value, safe="/") for name, value in path.items()})
        lines = [(b"host", b"holdfast.example.com"), *((k.encode(), v.encode()) for k, v in headers.items())]
        sent = b"" if body is NOTHING else json.dumps(body).encode()
        if sent:
            lines += [(b"content-type", b"application/json"), (b"content-length", str(len(sent)).encode())]
        status, media, raw = self._send(row.method, target, urlencode(query or {}).encode(), lines, sent)
        assert status < 300, f"{operation}: {status} {raw!r}"
        answer = json.loads(raw) if media.endswith("json") else raw.decode()
        if keep and operation not in self.recorded:
            known = {name: value for name, value in headers.items() if name not in {"authorization", "x-admin-key"}}
            asked = {"path": path, "query": query, "headers": known}
            example = {name: values for name, values in asked.items() if values}
            example |= {} if body is NOTHING else {"body": body}
            self.recorded[operation] = example | {"status": status, "answer": shorten(answer)}
        return answer

    def _send(self, method: str, target: str, query: bytes, lines: Any, body: bytes) -> tuple[int, str, bytes]:
        scope = {
            "type": "http", "method": method, "path": target, "raw_path": target.encode(), "query_string": query,
            "headers": lines, "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 7700), "scheme": "https",
        }  # fmt: skip
        messages: list[Any] = []
        parts = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            if not parts:
                await asyncio.Event().wait()
            return parts.pop()

        async def answer() -> None:
            has_part = asyncio.Event()

            async def send(message: Any) -> None:
                messages.append(message)
                if message["type"] == "http.response.body":
                    has_part.set()

            running = asyncio.ensure_future(self._app.app(scope, receive, send))
            await asyncio.wait({running, asyncio.ensure_future(has_part.wait())}, return_when=asyncio.FIRST_COMPLETED)
            if _is_stream(messages):
                running.cancel()  # a stream has no end: its first part is the example
            with suppress(asyncio.CancelledError):
                await running

        self._app.runner.run(answer())
        head = {name.decode().title(): value.decode() for name, value in messages[0]["headers"]}
        raw = b"".join(message["body"] for message in messages[1:])
        check_answer(method, target, messages[0]["status"], head, raw)  # type: ignore[arg-type]
        return messages[0]["status"], head.get("Content-Type", "").partition(";")[0], raw

    def close(self) -> None:
        self._app.close()


def _is_stream(messages: list[Any]) -> bool:
    return any(name == b"content-type" and STREAM.encode() in value for name, value in messages[0]["headers"])


class ApprovedPayments:
    """A payment provider whose payers approve every order at once."""

    name = "paypal"

    async def create_order(self, order: OrderRequest) -> Order:
        self._order = order
        return Order("5O190127TN364715T", "https://www.paypal.com/checkoutnow?token=5O190127TN364715T")

    async def capture(self, order_id: str) -> Capture:
        return Capture("3C679366HH908993F", self._order.purchase_id, self._order.cents, self._order.currency)

    async def close(self) -> None: ...


_RANDOM = re.compile(
    r"(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b)"
    r"|(?<=\b(?:tsk_|pur_))[0-9A-HJKMNP-TV-Z]{26}\b|(?<=\bacct_)[0-9A-HJKMNP-TV-Z]{26}\b|(?<=\btest:)\d{16}\b"
    r"|(?<=\bhf_live_)\w{20,}|(?<=\bwhsec_)[\w+/]+=*"
    r"|(?<=\breq_)[0-9a-f]{32}\b|(?<=\bhfo_)[0-9a-f]{48}\b"
    r"|(?<![\w-])(?!(?:hf_live|whsec|req|hfo|tsk|pur|acct)_|[a-z_]+(?![\w-]))[\w-]{28,64}(?![\w-])"
)
"""Ids and secrets. Anything else of 28 characters or more is random too, unless it is a name in small letters."""
_MASKED = re.compile(r"(?<=\bhf_live_)\w{4}…\w{4}")
_ALPHABETS = ("0123456789", "0123456789abcdef", "0123456789ABCDEFGHJKMNPQRSTVWXYZ")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def replace_random_values(document: str) -> str:
    """The text with each id and secret replaced by another of its form, the same wherever it occurs."""
    known: dict[str, str] = {}
    for found in _RANDOM.finditer(document):
        if found[0] not in known:
            known[found[0]] = _same_form(found[0], len(known))
    masked = {f"{value[:4]}…{value[-4:]}": f"{made[:4]}…{made[-4:]}" for value, made in known.items()}
    return _MASKED.sub(lambda found: masked[found[0]], _RANDOM.sub(lambda found: known[found[0]], document))


def _same_form(value: str, number: int) -> str:
    """A value of the same length and alphabet that depends on its number alone."""
    digest = b"".join(hashlib.sha256(f"example {number}.{part}".encode()).digest() for part in range(2))
    if len(value) == 36 and value.count("-") == 4:
        return str(UUID(bytes=digest[:16], version=4))
    alphabet = next((each for each in _ALPHABETS if set(value) <= set(each)), _LETTERS)
    text = "".join(alphabet[byte % len(alphabet)] for byte in digest[: len(value)])
    # 43 characters of base64 are 32 bytes: the last one stands for four bits.
    return text[:-1] + "AEIMQUYcgkosw048"[digest[-1] % 16] if len(value) == 43 else text
