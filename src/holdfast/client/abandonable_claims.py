"""Claims of a worker, which it can abandon at once when it stops."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import Document, NotFound, OutcomeUnknown, Unreachable
from holdfast.client.leases.claims import TaskClaim
from holdfast.client.leases.types import TaskLease
from holdfast.client.methods.base import Caller


class AbandonableClaims(Caller[Document]):
    """Calls operations of a client; claims have connections of their own, which `abandon` closes.

    Thereupon the server removes a claim that waits from the queue. It may have granted a task at that moment, and the
    answer is lost. So the claim is repeated under the same Idempotency-Key, without waiting: the answer is that task.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._separate = client.separate()
        self._is_abandoned = False

    def task(self, *types: str, worker: str, wait: float, deadline: float) -> TaskLease:
        """The next task of these types."""
        return TaskLease(self, TaskClaim(types, worker, {"deadline": deadline}), wait)

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
        """Call an operation by its name."""
        limits = {"timeout": timeout, "deadline": deadline}
        if operation != "claim_task":
            return self._client.call(operation, **limits, idempotency_key=idempotency_key, **arguments)
        key = idempotency_key or str(uuid.uuid4())
        try:
            return self._separate.call(operation, **limits, idempotency_key=key, **arguments)
        except OutcomeUnknown:
            if not self._is_abandoned:
                raise
        except Unreachable:
            if not self._is_abandoned:
                raise
            raise NotFound("the worker stops", code="no_tasks") from None
        return self._client.call(operation, **limits, idempotency_key=key, **(arguments | {"wait_seconds": None}))

    def listen(self, operation: str, /, **arguments: Any) -> Iterator[Document]:
        """Iterate over the documents of a stream."""
        return self._client.listen(operation, **arguments)

    def abandon(self) -> None:
        """End all claims; those that begin after this get nothing."""
        if not self._is_abandoned:
            self._is_abandoned = True
            self._separate.close()
