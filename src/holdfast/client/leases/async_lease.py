"""A lease that an asyncio task renews while you are inside its `async with` block."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from holdfast.client.errors import Document, HoldfastError, LeaseLost
from holdfast.client.leases.base import LeaseBase
from holdfast.client.leases.claims import UNCERTAIN, Claim, ClaimAttempts
from holdfast.client.leases.clock import now
from holdfast.client.leases.lease import RELEASE_SECONDS, log
from holdfast.client.leases.state import LeaseState
from holdfast.client.methods.base import Caller


class AsyncLease(LeaseBase):
    """A lease that a task renews."""

    def __init__(self, client: Caller[Coroutine[Any, Any, Document]], claim: Claim, wait: float = 0.0) -> None:
        super().__init__()
        self._client = client
        self._claim = claim
        self._wait = wait
        self._ended = asyncio.Event()
        self._renewer: asyncio.Task[None] | None = None
        self._one_renewal = asyncio.Lock()
        """Renewals are sent one at a time, so that the last answer is that of the last renewal."""

    async def __aenter__(self) -> Self:
        self._granted = await self._acquire()
        try:
            if self._granted.is_stale:
                await self.renew()
        except BaseException:
            await asyncio.shield(self._give_back())
            raise
        self._renewer = asyncio.create_task(self._renew_until_end(), name=f"holdfast-{self.terms.what}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_own:
            return  # this is a child of the process that holds the lease: only that process releases it
        try:
            await self._finish(error)
        finally:
            self._ended.set()
            if self._renewer is not None:
                self._renewer.cancel()
                await asyncio.wait({self._renewer})

    async def renew(self, **fields: Any) -> Document:
        """Renew now, with fields such as `progress` or `checkpoint`. Raises LeaseLost if the lease is over."""
        self._check_process()
        async with self._one_renewal:
            sent, timeout = now(), self._state.request_timeout
            self._state.renewing(sent, fields.get("ttl_seconds"))
            try:
                document = await self._client.call(
                    self.terms.renewal, **(self.terms.proof | fields), timeout=timeout, deadline=timeout
                )
            except HoldfastError as error:
                self._state.refused(error)
                raise
            self._state.renewed(sent, self._claim.duration(document), document)
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

    async def _renew_until_end(self) -> None:
        """Renew at the advised interval until the block ends or the lease is over."""
        while not self._ended.is_set():
            await asyncio.sleep(self._state.pause())
            if self._ended.is_set() or self._state.is_over():
                return
            try:
                await self.renew(**self._handover)
            except HoldfastError as error:
                log.info("%s was not renewed: %s", self.terms.what, error)

    async def _finish(self, error: BaseException | None) -> None:
        """Release; if the block raised nothing, raise LeaseLost in case the lease did not last to its end."""
        try:
            await self._client.call(
                self.terms.release,
                **self.terms.proof,
                **self._handover,
                timeout=RELEASE_SECONDS,
                deadline=RELEASE_SECONDS,
            )
        except LeaseLost:
            if error is None:
                raise
        except HoldfastError as problem:
            log.warning("%s was not released and will expire: %s", self.terms.what, problem)
            if error is None and self._state.is_over():
                self.check()
