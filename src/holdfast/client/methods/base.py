"""What every room of methods stands on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

R = TypeVar("R")
"""What a call gives: a document, or something to await for it."""


class Caller(ABC, Generic[R]):
    """Can call operations by their names."""

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
        """Ask for an operation by its name; path parameters, query and body are all arguments.

        `timeout` is for one attempt, `deadline` for all of them, both in seconds. `idempotency_key` is made for you
        where the server takes one; give your own to repeat a call after your program was restarted.
        """

    @abstractmethod
    def listen(self, operation: str, /, **arguments: Any) -> Any:
        """Every document of a stream, for as long as one listens; a lost connection is made again."""
