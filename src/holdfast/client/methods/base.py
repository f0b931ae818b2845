"""Base of the method classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

R = TypeVar("R")
"""Result of a call: a document, or an awaitable of one."""


class Caller(ABC, Generic[R]):
    """Calls operations by their names."""

    @abstractmethod
    def call(
        self,
        operation: str,
        /,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        idempotency_key: str | None = None,
        **arguments: Any,
    ) -> R:
        """Call an operation by its name. Path parameters, query parameters and body fields are all keyword arguments.

        `timeout` limits one attempt, `deadline` all attempts together, both in seconds. An Idempotency-Key is made for
        you where the server accepts one; pass your own to repeat a call after your program has restarted.
        """

    @abstractmethod
    def listen(self, operation: str, /, **arguments: Any) -> Any:
        """Iterate over the documents of a stream by its operation's name. A lost connection is made again."""
