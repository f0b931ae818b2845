"""The same lease for programs with an event loop: renewed by a task of its own inside `async with`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from holdfast.client.claims import Claim
from holdfast.client.errors import Document, HoldfastError, LeaseLost, OutcomeUnknown
from holdfast.client.lease import AGAIN_SECONDS, LAST_SECONDS, log
from holdfast.client.lease_base import Holding
from holdfast.client.lease_clock import LeaseClock, now
from holdfast.client.methods.base import Caller


class AsyncLease(Holding):
    """A holding that a task renews."""

    def __init__(self, client: Caller[Coroutine[Any, Any, Document]], claim: Claim, wait: float = 0.0) -> None:
        super().__init__()
        self._client = client
        self._claim = claim
        self._wait = wait
        self._ended = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        sent = await self._ask()
        if now() - sent > self.terms.every / 2:
            await self.renew()  # it was a long wait: what we can prove begins with a new sending
        self._keeper = asyncio.create_task(self._keep(), name=f"holdfast-{self.terms.what}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._finish(error)
        finally:
            self._ended.set()
            if self._keeper is not None:
                self._keeper.cancel()
                await asyncio.wait({self._keeper})

    async def renew(self, **left: Any) -> Document:
        """Renew now, and leave something for the next holder; LeaseLost if it is over."""
        sent = now()
        patience = self._clock.patience()
        try:
            document = await self._client.call(
                self.terms.renewal, **self.terms.proof, **left, timeout=patience, deadline=patience
            )
        except HoldfastError as error:
            self._clock.refused(error)
            raise
        self._clock.renewed(sent, document)
        return document

    async def _ask(self) -> float:
        """Claim until it is ours or patience ends; the moment at which the good request was first sent."""
        until = time.monotonic() + self._wait
        while True:
            left = until - time.monotonic()
            sent = now()
            try:
                document = await self._client.call(self._claim.operation, **self._claim.arguments(left))
            except (LeaseLost, OutcomeUnknown):
                # The grant was over before its answer arrived, or we will never know: ask anew.
                if left <= 0:
                    raise
                await asyncio.sleep(min(AGAIN_SECONDS, left))
                continue
            terms = self._claim.terms(document)
            if terms is not None:
                self._granted = LeaseClock(terms, sent)
                return sent
            if time.monotonic() >= until:
                raise self._claim.refusal(document)
            await asyncio.sleep(min(self._claim.pause(document), max(0.0, until - time.monotonic())))

    async def _keep(self) -> None:
        """Renew at the advised pace until the end, or until there is nothing left to renew."""
        while not self._ended.is_set():
            await asyncio.sleep(self._clock.pause())
            if self._ended.is_set() or self._clock.is_over():
                return
            try:
                await self.renew(**self._left)
            except HoldfastError as error:
                log.info("%s was not renewed: %s", self.terms.what, error)

    async def _finish(self, error: BaseException | None) -> None:
        """Give it back; and if nothing else went wrong, say if it was not ours to the end."""
        try:
            await self._tell(self.terms.release, **self._left)
        except LeaseLost:
            if error is None:
                raise
        except HoldfastError as trouble:
            log.warning("%s was not given back, and runs out by itself: %s", self.terms.what, trouble)
            if error is None and self._clock.is_over():
                self.check()

    async def _tell(self, operation: str, **more: Any) -> Document:
        return await self._client.call(
            operation, **self.terms.proof, **more, timeout=LAST_SECONDS, deadline=LAST_SECONDS
        )
