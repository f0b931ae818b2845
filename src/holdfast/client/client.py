"""The client for plain programs and threads."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Protocol, Self

from holdfast.client.errors import Document
from holdfast.client.methods.every import Methods
from holdfast.client.retry import Broken, Call, Unsent
from holdfast.client.wire import Answer, Request

TIMEOUT = 10.0
"""Seconds that one attempt may take, beside what the caller asked the server to wait."""
DEADLINE = 30.0
"""Seconds for all attempts together."""


class Transport(Protocol):
    """How requests reach a server."""

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt; Unsent or Broken if there was no answer."""

    def close(self) -> None:
        """Let go of everything."""


class Client(Methods[Document]):
    """Every operation as a method. One client may serve many threads; close it when you are done.

    `url` and `key` come from HOLDFAST_URL and HOLDFAST_API_KEY unless they are given. What is safe to repeat is
    repeated for up to `deadline` seconds; everything else raises at the first trouble.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        transport: Transport | None = None,
    ) -> None:
        self._timeout = timeout
        self._deadline = deadline
        self._transport = transport or _over_http(url, key)

    def call(
        self,
        operation: str,
        /,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        idempotency_key: str | None = None,
        **arguments: Any,
    ) -> Document:
        """Ask for an operation by its name; path parameters, query and body are all arguments."""
        call = Call(
            operation,
            arguments,
            timeout=self._timeout if timeout is None else timeout,
            deadline=self._deadline if deadline is None else deadline,
            idempotency_key=idempotency_key,
        )
        while True:
            verdict = call.judge(self._attempt(call))
            if not isinstance(verdict, float):
                return verdict
            time.sleep(verdict)

    def _attempt(self, call: Call) -> Answer | Unsent | Broken:
        try:
            return self._transport.send(call.request, call.timeout())
        except (Unsent, Broken) as trouble:
            return trouble

    def close(self) -> None:
        """Let the connections go."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _over_http(url: str | None, key: str | None) -> Transport:
    from holdfast.client.http import HttpTransport  # noqa: PLC0415 - httpx2 is slow to import, and not always needed

    return HttpTransport(url, key)
