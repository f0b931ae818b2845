"""A lease that is renewed in the background while you are inside its `with` block."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast.client.errors import Document, HoldfastError, LeaseLost
from holdfast.client.leases.base import LeaseBase, log
from holdfast.client.leases.claims import UNCERTAIN, Claim, ClaimAttempts
from holdfast.client.leases.clock import now
from holdfast.client.leases.state import LeaseState

if TYPE_CHECKING:
    from holdfast.client.client import Client

RELEASE_SECONDS = 5.0
"""Limit for the release; after that the lease expires by itself."""


class Lease(LeaseBase):
    """A lease for threads."""

    def __init__(self, client: Client, claim: Claim, wait: float = 0.0) -> None:
        super().__init__()
        self._client = client
        self._claim = claim
        self._wait = wait
        self.one_renewal = threading.Lock()
        """Renewals are sent one at a time, so that the last answer is that of the last renewal."""

    def __enter__(self) -> Self:
        self._granted = self._acquire()
        try:
            if self._granted.is_stale:
                self.renew()
            self._client.renewals.add(self)
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_own:
            return  # this is a child of the process that holds the lease: only that process releases it
        try:
            if not self.is_settled:
                self._finish(error)
        finally:
            self._client.renewals.discard(self)

    def renew(self, **fields: Any) -> Document:
        """Renew now, with fields such as `progress` or `checkpoint`. Raises LeaseLost if the lease is over."""
        self._check_process()
        with self.one_renewal:
            return self.send_renewal(fields, self.state.request_timeout)

    def send_renewal(self, fields: dict[str, Any], timeout: float) -> Document:
        """Renew within `timeout` seconds. The caller has acquired `one_renewal`."""
        sent = now()
        self.state.renewing(sent, fields.get("ttl_seconds"))
        try:
            document = self._client.call(
                self.terms.renewal, **(self.terms.proof | fields), timeout=timeout, deadline=timeout
            )
        except HoldfastError as error:
            self.state.refused(error)
            raise
        self.state.renewed(sent, self._claim.duration(document), document)
        return document

    def _give_back(self) -> None:
        """Release a lease whose block is not entered, so that nobody waits for its TTL."""
        limit = RELEASE_SECONDS
        try:
            self._client.call(self.terms.release, **self.terms.proof, timeout=limit, deadline=limit)
        except HoldfastError as problem:
            log.warning("%s was not released and will expire: %s", self.terms.what, problem)

    def _acquire(self) -> LeaseState:
        attempts = ClaimAttempts(self._claim, self._wait)
        while True:
            try:
                document = self._client.call(self._claim.operation, **attempts.arguments())
            except UNCERTAIN as error:
                time.sleep(attempts.retry_after(error))
                continue
            outcome = attempts.evaluate(document)
            if isinstance(outcome, LeaseState):
                return outcome
            time.sleep(outcome)

    def _finish(self, error: BaseException | None) -> None:
        """Release; if the block raised nothing, raise LeaseLost in case the lease did not last to its end."""
        try:
            self._client.call(
                self.terms.release,
                **self.terms.proof,
                **self.handover,
                timeout=RELEASE_SECONDS,
                deadline=RELEASE_SECONDS,
            )
        except LeaseLost:
            if error is None:
                raise
        except HoldfastError as problem:
            log.warning("%s was not released and will expire: %s", self.terms.what, problem)
            if error is None and self.state.is_over():
                self.check()
