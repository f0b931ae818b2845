"""Sends one delivery attempt: signs it, posts it and returns the result. No redirects, proxies, cookies or retries."""

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
from holdfast.transport.webhooks.checked_network import AnswerTooLong, CheckedNetwork, NotPublic, Resolve
from holdfast.transport.webhooks.dns import CURRENT_WEBHOOK, NoSuchHost, Resolver
from holdfast.transport.webhooks.messages import message_id

CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 256
_SUCCESS = range(200, 300)
GONE = 410
_RETRY_AFTER_STATUSES = {429, 503}
_AGENT = f"Holdfast-Webhook/{__version__}"
_LOCK_AGENT = "OctoStore-Webhook/1.0"


_ERROR_MESSAGES: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((TimeoutError, httpcore2.TimeoutException), "timeout"),
    ((AnswerTooLong,), "answer too long"),
    ((NotPublic,), "not a public address"),
    ((NoSuchHost,), "no such host"),
    ((httpcore2.ConnectError,), "connection failed"),
    ((httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol, OSError), "connection broke"),
)
_FAILURES = tuple(kind for kinds, _ in _ERROR_MESSAGES for kind in kinds)


class Sender:
    """Posts deliveries to their receivers."""

    def __init__(
        self, seconds: float, *, private: bool = False, ca_bundle: str | None = None, resolve: Resolve | None = None
    ) -> None:
        trust = ssl.create_default_context()
        if ca_bundle is not None:
            trust.load_verify_locations(ca_bundle)
        self._seconds = seconds
        self._private = private
        self._timeouts = {"connect": min(CONNECT_SECONDS, seconds), "read": seconds, "write": seconds, "pool": seconds}
        # No connection is reused: the addresses of a name are checked for every attempt.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=0,
            network_backend=CheckedNetwork(resolve or Resolver().resolve, private=private),
        )

    async def send(self, hook: Webhook, delivery: Delivery) -> AttemptResult:
        """Post a delivery. Only the status is read; a long or slow response body costs nothing."""
        if not self._is_allowed(hook):
            return AttemptResult(arrived=False, error="address not allowed")
        CURRENT_WEBHOOK.set(delivery.webhook_key)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._post(hook.url, delivery.body.encode(), build_headers(hook, delivery))
        except _FAILURES as error:
            return AttemptResult(arrived=False, error=_describe(error))

    def _is_allowed(self, hook: Webhook) -> bool:
        """Whether the URL is allowed by the present settings, which may be stricter than when it was created."""
        target, rule = parse_url(hook.url), octostore_url_problem if hook.family == OCTOSTORE else url_problem
        return isinstance(target, Target) and rule(target, private=self._private) is None

    async def _post(self, url: str, body: bytes, headers: list[tuple[str, str]]) -> AttemptResult:
        options = {"timeout": self._timeouts}
        async with self._pool.stream("POST", url, headers=headers, content=body, extensions=options) as answer:
            status = answer.status
            if status in _SUCCESS:
                return AttemptResult(arrived=True, status=status)
            wait = _retry_after(answer.headers) if status in _RETRY_AFTER_STATUSES else None
            error = f"status {status}"
            return AttemptResult(arrived=False, status=status, error=error, retry_after=wait, gone=status == GONE)

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


def build_headers(hook: Webhook, delivery: Delivery) -> list[tuple[str, str]]:
    """The headers of an attempt: id, timestamp and signature. Every attempt has its own time and the same id."""
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
    """Seconds of a Retry-After header, which is a number or a date."""
    text = next((value.decode("latin-1").strip() for name, value in headers if name.lower() == b"retry-after"), "")
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError, TypeError):
        return None


def _describe(error: BaseException) -> str:
    """Our own message for an error; nothing that a receiver sent is repeated."""
    if _is_tls(error):
        return "tls failed"
    return next(message for kinds, message in _ERROR_MESSAGES if isinstance(error, kinds))


def _is_tls(error: BaseException) -> bool:
    cause: Any = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
