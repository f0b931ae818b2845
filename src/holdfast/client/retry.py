"""Whether and when to send a request again. Only decides: nothing here waits or sends."""

from __future__ import annotations

import random
import time
from http import HTTPStatus
from typing import Any

from holdfast.client import errors, request
from holdfast.client.errors import Document, HoldfastError, OutcomeUnknown, Unreachable
from holdfast.client.request import Answer

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 20.0
CLOSED = "closed"
"""Error code of calls of a closed client."""
MAX_DOUBLINGS = 30
"""A pause that was doubled so often is longer than any limit; a power of a thousand would be no float any more."""
_TRANSIENT = {408, 429, 500, 502, 503, 504}
_NOT_APPLIED = {"overloaded", "draining", "store_unavailable", "idempotency_in_flight"}
"""Error codes that guarantee that nothing was changed."""


class NotSent(Exception):
    """No connection was made: the server never received the request."""


class AnswerLost(Exception):
    """The request was sent, but no answer was received."""


class Call:
    """One call of an operation: every attempt sends the same request with the same Idempotency-Key."""

    def __init__(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        timeout: float,
        deadline: float,
        idempotency_key: str | None = None,
    ) -> None:
        self._operation = request.find_operation(name)
        self.request = request.build_request(self._operation, arguments, idempotency_key)
        wait = float(arguments.get("wait_seconds") or 0)
        self._timeout = timeout + wait
        self._end = time.monotonic() + deadline + wait
        self._attempts = 0
        self._is_uncertain = False

    def timeout(self) -> float:
        """Seconds that the next attempt may take."""
        return max(0.05, min(self._timeout, self._end - time.monotonic()))

    def evaluate(self, outcome: Answer | NotSent | AnswerLost) -> Document | float:
        """The answered document, or seconds before the next attempt; raises the error if it must not be repeated."""
        if isinstance(outcome, Answer):
            document = outcome.document()
            if outcome.status < HTTPStatus.MULTIPLE_CHOICES or is_delayed_lock(outcome.status, document):
                return document
            error = errors.error_of(outcome.status, document, outcome.headers)
        else:
            error = self._no_answer(outcome)
        return self._pause(error)

    def closed(self) -> HoldfastError:
        """The error of a call that ended because its client was closed."""
        closed = Unreachable("this client is closed", code=CLOSED, hint="Create a new client.")
        return self._final_error(closed)

    def _no_answer(self, problem: NotSent | AnswerLost) -> HoldfastError:
        if isinstance(problem, AnswerLost) and self._operation.method != "GET":
            self._is_uncertain = True
        if self._is_uncertain:
            return OutcomeUnknown(f"no answer to {self._operation.name}: {problem}")
        return Unreachable(f"no answer to {self._operation.name}: {problem}")

    def _pause(self, error: HoldfastError) -> float:
        if not self._may_repeat(error):
            raise error
        longest = doubled(FIRST_PAUSE, self._attempts, LONGEST_PAUSE)
        self._attempts += 1
        # Full jitter: clients that failed together do not retry together.
        pause = (error.retry_after or 0.0) + random.uniform(0.0, longest)
        if time.monotonic() + pause >= self._end:
            raise self._final_error(error)
        return pause

    def _may_repeat(self, error: HoldfastError) -> bool:
        if isinstance(error, Unreachable) or error.code in _NOT_APPLIED:
            return True
        if error.status == HTTPStatus.TOO_MANY_REQUESTS:
            return error.retry_after is not None
        if error.status is None or error.status in _TRANSIENT:
            return request.is_repeatable(self._operation)
        return False

    def _final_error(self, error: HoldfastError) -> HoldfastError:
        """An earlier attempt whose answer was lost may have been applied, whatever the last attempt answered."""
        if self._is_uncertain and not isinstance(error, OutcomeUnknown):
            return OutcomeUnknown(f"an answer was lost, and then: {error.message}", document=error.document)
        return error


def doubled(first: float, failures: int, longest: float) -> float:
    """A pause that doubles with each failure, up to the longest."""
    return min(first * 2.0 ** min(failures, MAX_DOUBLINGS), longest)


def is_delayed_lock(status: int, document: Document) -> bool:
    """Whether a 409 is a lock's ordinary answer "delayed", and not a refusal."""
    return status == HTTPStatus.CONFLICT and document.get("status") == "delayed"
