"""Whether to send a request again, and when. Decides; never waits and never sends."""

from __future__ import annotations

import random
import time
from typing import Any

from holdfast.client import errors, request
from holdfast.client.errors import Document, HoldfastError, OutcomeUnknown, Unreachable
from holdfast.client.request import Answer

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 20.0
_TRANSIENT = {408, 429, 500, 502, 503, 504}
_NEVER_DONE = {"overloaded", "draining", "store_unavailable", "idempotency_in_flight"}
"""Refusals that promise that nothing was changed."""


class Unsent(Exception):
    """No connection: the server never saw the request."""


class Broken(Exception):
    """The request went out, and no answer came back."""


class Call:
    """One operation on its way: every attempt is the same request, under the same Idempotency-Key."""

    def __init__(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        timeout: float,
        deadline: float,
        idempotency_key: str | None = None,
    ) -> None:
        self._operation = request.find(name)
        self.request = request.request(self._operation, arguments, idempotency_key)
        patience = float(arguments.get("wait_seconds") or 0)
        self._timeout = timeout + patience
        self._until = time.monotonic() + deadline + patience
        self._attempts = 0
        self._in_doubt = False

    def timeout(self) -> float:
        """How long the next attempt may take, in seconds."""
        return max(0.05, min(self._timeout, self._until - time.monotonic()))

    def judge(self, outcome: Answer | Unsent | Broken) -> Document | float:
        """The document, or how many seconds to pause before the next attempt; or raise what went wrong."""
        if isinstance(outcome, Answer):
            document = outcome.document()
            if outcome.status < 300 or self._is_answer(outcome.status, document):  # noqa: PLR2004 - HTTP's own number
                return document
            error = errors.of_answer(outcome.status, document, outcome.headers)
        else:
            error = self._no_answer(outcome)
        return self._pause(error)

    def _is_answer(self, status: int, document: Document) -> bool:
        """A lock that rests is told as a conflict, but it is what was asked for."""
        return status == 409 and document.get("status") == "delayed"  # noqa: PLR2004 - HTTP's own number

    def _no_answer(self, trouble: Unsent | Broken) -> HoldfastError:
        if isinstance(trouble, Broken) and self._operation.method != "GET":
            self._in_doubt = True
        if self._in_doubt:
            return OutcomeUnknown(f"no answer to {self._operation.name}: {trouble}")
        return Unreachable(f"no answer to {self._operation.name}: {trouble}")

    def _pause(self, error: HoldfastError) -> float:
        if not self._may_repeat(error):
            raise error
        most = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._attempts)
        self._attempts += 1
        # Full jitter: callers that failed together do not come back together.
        pause = (error.retry_after or 0.0) + random.uniform(0.0, most)  # noqa: S311 - spreads load, hides nothing
        if time.monotonic() + pause >= self._until:
            raise self._last_word(error)
        return pause

    def _may_repeat(self, error: HoldfastError) -> bool:
        if isinstance(error, Unreachable) or error.code in _NEVER_DONE:
            return True
        if error.status == 429:  # noqa: PLR2004 - HTTP's own number
            return error.retry_after is not None
        if error.status is None or error.status in _TRANSIENT:
            return request.is_safe(self._operation)
        return False

    def _last_word(self, error: HoldfastError) -> HoldfastError:
        """An attempt that broke earlier may have been heard, whatever the last one was told."""
        if self._in_doubt and not isinstance(error, OutcomeUnknown):
            return OutcomeUnknown(f"an answer was lost, and then: {error.message}", document=error.document)
        return error
