"""Claims of a worker: several tasks in one request, which it can abandon at once when it stops."""

from __future__ import annotations

import uuid
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import Document, OutcomeUnknown, ServerError, Unreachable
from holdfast.client.leases.claims import TaskClaim, claimed_tasks
from holdfast.client.leases.clock import now
from holdfast.client.leases.state import LeaseState
from holdfast.client.leases.types import TaskLease
from holdfast.operations.bounds import TASK_CLAIM_LIMIT

CLAIM_SECONDS = 5.0
"""How long a claim is repeated while the server cannot be reached."""


class AbandonableClaims:
    """Claims tasks for a client, over connections of their own, which `abandon` closes.

    Thereupon the server removes a claim that waits from the queue. It may have granted tasks at that moment, and the
    answer is lost. So the claim is repeated under the same Idempotency-Key, without waiting: the answer is those tasks.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._separate = client.separate()
        self._is_abandoned = False

    def claim(self, claim: TaskClaim, limit: int, wait: float) -> list[TaskLease]:
        """The next tasks, at most `limit`. If none is ready, wait for one; after `wait` seconds there are none."""
        sent = now()
        document = self._call(claim.arguments(wait) | {"limit": min(limit, TASK_CLAIM_LIMIT.most)})
        if "tasks" not in document:
            raise ServerError("the answer is not that of a claim: it may come from a proxy")
        granted = [LeaseState(terms, sent) for terms in claimed_tasks(document)]
        return [TaskLease.of_grant(self._client, claim, state) for state in granted]

    def abandon(self) -> None:
        """End the claims; those that begin after this get nothing."""
        if not self._is_abandoned:
            self._is_abandoned = True
            self._separate.close()

    def _call(self, arguments: dict[str, Any]) -> Document:
        key = str(uuid.uuid4())
        try:
            return self._separate.call("claim_task", **arguments, deadline=CLAIM_SECONDS, idempotency_key=key)
        except OutcomeUnknown:
            if not self._is_abandoned:
                raise
        except Unreachable:
            if not self._is_abandoned:
                raise
            return {"tasks": []}
        again = arguments | {"wait_seconds": None}
        return self._client.call("claim_task", **again, deadline=CLAIM_SECONDS, idempotency_key=key)
