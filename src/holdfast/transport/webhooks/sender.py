"""One attempt: sign, send, and say what came of it. No redirects, no proxies, no cookies, no second try."""

from __future__ import annotations

import asyncio
import email.utils
import ssl
import time
from typing import Any

import httpcore2

from holdfast import __version__
from holdfast.core.webhooks.delivery import AttemptResult, Delivery
from holdfast.core.webhooks.destination import Target, octostore_url_problem, parse_url, url_problem
from holdfast.core.webhooks.signature import sign, sign_octostore
from holdfast.core.webhooks.webhook import OCTOSTORE, Webhook, active_secrets
from holdfast.transport.times import wall_clock
from holdfast.transport.webhooks.checked_network import CheckedNetwork, NotPublic, Resolve
from holdfast.transport.webhooks.dns import ASKED_FOR, Lookups, NoSuchHost
from holdfast.transport.webhooks.messages import message_id

CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 256
GONE = 410
_PUT_OFF = {429, 503}
_AGENT = f"Holdfast-Webhook/{__version__}"
_LOCK_AGENT = "OctoStore-Webhook/1.0"


_WORDS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((TimeoutError, httpcore2.TimeoutException), "timeout"),
    ((NotPublic,), "not a public address"),
    ((NoSuchHost,), "no such host"),
    ((httpcore2.ConnectError,), "connection failed"),
    ((httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol, OSError), "connection broke"),
)
_FAILURES = tuple(kind for kinds, _ in _WORDS for kind in kinds)


class Sender:
    """Whoever posts to receivers."""

    def __init__(
        self, seconds: float, *, private: bool = False, ca_bundle: str | None = None, resolve: Resolve | None = None
    ) -> None:
        trust = ssl.create_default_context()
        if ca_bundle is not None:
            trust.load_verify_locations(ca_bundle)
        self._seconds = seconds
        self._private = private
        self._timeouts = {"connect": min(CONNECT_SECONDS, seconds), "read": seconds, "write": seconds, "pool": seconds}
        # Nothing is kept alive: the addresses behind a name are checked for every attempt.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=0,
            network_backend=CheckedNetwork(resolve or Lookups().resolve, private=private),
        )

    async def send(self, hook: Webhook, delivery: Delivery) -> AttemptResult:
        """Post it. The status is the answer: what follows is not read, so it can be neither long nor slow."""
        if not self._may_go_to(hook):
            return AttemptResult(arrived=False, error="address not allowed")
        ASKED_FOR.set(delivery.webhook_key)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._post(hook.url, delivery.body.encode(), headers_of(hook, delivery))
        except _FAILURES as error:
            return AttemptResult(arrived=False, error=_told(error))

    def _may_go_to(self, hook: Webhook) -> bool:
        """Whether the webhook could be made today: the operator may have allowed more when it was."""
        target, rule = parse_url(hook.url), octostore_url_problem if hook.family == OCTOSTORE else url_problem
        return isinstance(target, Target) and rule(target, private=self._private) is None

    async def _post(self, url: str, body: bytes, headers: list[tuple[str, str]]) -> AttemptResult:
        options = {"timeout": self._timeouts}
        async with self._pool.stream("POST", url, headers=headers, content=body, extensions=options) as answer:
            status = answer.status
            if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own borders
                return AttemptResult(arrived=True, status=status)
            wait = _retry_after(answer.headers) if status in _PUT_OFF else None
            return AttemptResult(False, status, f"status {status}", wait, gone=status == GONE)  # noqa: FBT003 - arrived

    async def close(self) -> None:
        """Hang up."""
        await self._pool.aclose()


def headers_of(hook: Webhook, delivery: Delivery) -> list[tuple[str, str]]:
    """What a receiver checks. An attempt carries its own time; only the id stays the same."""
    now = wall_clock()
    body, seconds, name = delivery.body.encode(), int(time.time()), message_id(delivery)
    headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", _LOCK_AGENT if hook.family == OCTOSTORE else _AGENT),
        ("webhook-id", name),
        ("webhook-timestamp", str(seconds)),
    ]
    secrets = active_secrets(hook, now)
    if secrets:
        headers.append(("webhook-signature", sign(secrets, name, seconds, body)))
    if hook.family == OCTOSTORE and hook.secret is not None:
        headers.append(("X-OctoStore-Signature", sign_octostore(hook.secret, body)))
    return headers


def _retry_after(headers: list[tuple[bytes, bytes]]) -> float | None:
    """Seconds for which we are asked to wait, in either of HTTP's spellings."""
    text = next((value.decode("latin-1").strip() for name, value in headers if name.lower() == b"retry-after"), "")
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError, TypeError):
        return None


def _told(error: BaseException) -> str:
    """What went wrong, in our words: nothing that a receiver sent is repeated."""
    if _is_tls(error):
        return "tls failed"
    return next(words for kinds, words in _WORDS if isinstance(error, kinds))


def _is_tls(error: BaseException) -> bool:
    causes: Any = error
    while causes is not None:
        if isinstance(causes, ssl.SSLError):
            return True
        causes = causes.__cause__ or causes.__context__
    return False
