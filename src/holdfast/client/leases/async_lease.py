"""A lease that is renewed in the background while you are inside its `async with` block."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast.client.errors import Document, HoldfastError, LeaseLost
from holdfast.client.leases.base import LeaseBase, log
from holdfast.client.leases.claims import UNCERTAIN, Claim, ClaimAttempts
from holdfast.client.leases.clock import now
from holdfast.client.leases.lease import RELEASE_SECONDS
from holdfast.client.leases.state import LeaseState

if TYPE_CHECKING:
    from holdfast.client.async_client import AsyncClient


class AsyncLease(LeaseBase):
    """A lease for asyncio."""

    def __init__(self, client: AsyncClient, claim: Claim, wait: float = 0.0) -> None:
        super().__init__()
        self._client = client
        self._claim = claim
        self._wait = wait
        self.one_renewal = asyncio.Semaphore(1)
        """Renewals are sent one at a time, so that the last answer is that of the last renewal."""

    async def __aenter__(self) -> Self:
        self._granted = await self._acquire()
        try:
            if self._granted.is_stale:
                await self.renew()
        except BaseException:
            await asyncio.shield(self._give_back())
            raise
        self._renewals = self._client.renewals
        self._renewals.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_own:
            return  # this is a child of the process that holds the lease: only that process releases it
        try:
            if not self.is_settled:
                await self._finish(error)
        finally:
            await self._renewals.discard(self)

    async def renew(self, **fields: Any) -> Document:
        """Renew now, with fields such as `progress` or `checkpoint`. Raises LeaseLost if the lease is over."""
        self._check_process()
        async with self.one_renewal:
            return await self.send_renewal(fields, self.state.request_timeout)

    async def send_renewal(self, fields: dict[str, Any], timeout: float) -> Document:
        """Renew within `timeout` seconds. The caller has acquired `one_renewal`."""
        sent = now()
        self.state.renewing(sent, fields.get("ttl_seconds"))
        try:
            document = await self._client.call(
                self.terms.renewal, **(self.terms.proof | fields), timeout=timeout, deadline=timeout
            )
        except HoldfastError as error:
            self.state.refused(error)
            raise
        self.state.renewed(sent, self._claim.duration(document), document)
        return document

    async def _give_back(self) -> None:
        """Release a lease whose block is not entered, so that nobody waits for its TTL."""
        limit = RELEASE_SECONDS
        try:
            await self._client.call(self.terms.release, **self.terms.proof, timeout=limit, deadline=limit)
        except HoldfastError as problem:
            log.warning("%s was not released and will expire: %s", self.terms.what, problem)

    async def _acquire(self) -> LeaseState:
        attempts = ClaimAttempts(self._claim, self._wait)
        while True:
            try:
                document = await self._client.call(self._claim.operation, **attempts.arguments())
            except UNCERTAIN as error:
                await asyncio.sleep(attempts.retry_after(error))
                continue
            outcome = attempts.evaluate(document)
            if isinstance(outcome, LeaseState):
                return outcome
            await asyncio.sleep(outcome)

    async def _finish(self, error: BaseException | None) -> None:
        """Release; if the block raised nothing, raise LeaseLost in case the lease did not last to its end."""
        try:
            await self._client.call(
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
