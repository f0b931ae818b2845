"""Leases for asyncio: a job, files, the leadership of an election, a task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast.client.errors import Document, HoldfastError, LeaseLost, NotFound
from holdfast.client.leases.async_lease import AsyncLease
from holdfast.client.leases.base import JobLeaseBase, TaskLeaseBase, log
from holdfast.client.leases.clock import now
from holdfast.client.leases.reservation import ReservationBase
from holdfast.client.leases.types import COMPLETE_SECONDS
from holdfast.client.methods.jobs import done_for
from holdfast.client.worker.errors import failure
from holdfast.operations.bounds import DONE_FOR
from holdfast.operations.progress import progress_document

if TYPE_CHECKING:
    from holdfast.client.async_client import AsyncClient
    from holdfast.client.leases.reservation import ReservationClaim


class AsyncWorkLease(JobLeaseBase, AsyncLease):
    """A job or a task that is held inside the `async with` block."""

    async def checkpoint(self, data: Any) -> None:
        """Save data for the next owner, in case this one stops here. It is stored when this returns."""
        await self.renew(checkpoint=data, **self.handover)

    async def progress(self, fraction: float, message: str | None = None) -> None:
        """Show others which part of the work is done, from 0 to 1, and what is done now.

        Nothing is sent if neither the whole percent nor the message has changed.
        """
        document = progress_document(fraction, message)
        if document != self.shown_progress:
            await self.renew(progress=document, **self.handover)
            self.shown_progress = document

    async def offer(
        self,
        *,
        note: str | None = None,
        checkpoint: Any = None,
        to: str | None = None,
        expires_in_seconds: int | None = None,
    ) -> str:
        """Offer it to another worker, and return the code with which that worker claims it.

        It is held for that long (an hour), also after the end of the block, which does not release it. `check()` raises
        LeaseLost from now on: whoever has the code may have taken over. `to` is the name of a session, which alone
        may accept.
        """
        left = {name: value for name, value in (("note", note), ("checkpoint", checkpoint)) if value is not None}
        document = await self._settle(f"offer_{self.kind}", **left, to=to, expires_in_seconds=expires_in_seconds)
        self._offered()
        return str(document["offer"])

    async def withdraw(self) -> None:
        """Withdraw the offer and go on. Raises LeaseLost if another worker has taken over."""
        self._check_process()
        async with self.one_renewal:  # a renewal that is under way may be of the offer, which lasts longer
            sent = now()
            document = await self._client.call(f"withdraw_{self.kind}_offer", **self.terms.proof)
            self._kept(self._claim, document, sent)
        self._renewals.add(self)

    async def _settle(self, operation: str, **more: Any) -> Document:
        self._check_process()
        fields = self.terms.proof | self.handover | more
        document = await self._client.call(operation, **fields, deadline=COMPLETE_SECONDS)
        self.is_settled = True
        await self._renewals.discard(self)
        return document


class AsyncJob(AsyncWorkLease):
    """A job that is held inside the `async with` block and released at its end."""

    async def done(self, result: Any = None, *, done_for_seconds: int | None = DONE_FOR.default) -> Document:
        """Release the job as done: who claims it within that time (None: ever) gets the result instead."""
        kept = done_for(done_for_seconds)
        return await self._settle("release_job", outcome="done", result=result, done_for_seconds=kept)

    async def failed(self, result: Any = None) -> Document:
        """Release the job as failed: the next owner finds that, and the result, in `previous`."""
        return await self._settle("release_job", outcome="failed", result=result)


class AsyncReservation(ReservationBase, AsyncLease):
    """Files that are reserved inside the `async with` block and released at its end."""

    def __init__(self, client: AsyncClient, claim: ReservationClaim, wait: float = 0.0) -> None:
        super().__init__(client, claim, wait)
        self._one_change = asyncio.Lock()
        """Changes are sent one at a time, so that `paths` are those of the last one."""

    async def extend(self, *paths: str) -> Document:
        """Reserve more files, all or none. It never waits: raises Held, with `conflicts`, if others hold them."""
        return await self._change("extend_reservation", paths)

    async def release(self, *paths: str) -> Document:
        """Release some of `paths`, as they are written there, and hold the others; without arguments release all."""
        return await self._change("release_files", paths)

    async def _change(self, operation: str, paths: tuple[str, ...]) -> Document:
        self._check_process()
        async with self._one_change:
            try:
                return self.changed(await self._client.call(operation, **self.terms.proof, paths=paths or None))
            except (LeaseLost, NotFound) as error:
                self.state.refused(error)
                raise


class AsyncLeader(AsyncLease):
    """Leadership of an election, held inside the `async with` block."""


class AsyncTaskLease(TaskLeaseBase, AsyncWorkLease):
    """A task that is held inside the `async with` block: completed at its end, failed if the block raises.

    Set `result`, or call `complete`, `fail` or `release` yourself. `check()` also raises CancelRequested.
    """

    async def complete(self, result: Document | None = None) -> Document:
        """Complete the task with a result."""
        return await self._settle("complete_task", result=result)

    async def fail(self, error: BaseException) -> Document:
        """Fail the attempt. The exception's class decides if and when it is retried: see `Retry`, `Permanent`."""
        return await self._settle("fail_task", **failure(error))

    async def release(self, delay_seconds: int | None = None) -> Document:
        """Return the task to its queue; the attempt is not counted."""
        return await self._settle("release_task", delay_seconds=delay_seconds)

    async def _finish(self, error: BaseException | None) -> None:
        verb, fields = self.outcome(error)
        try:
            await self._settle(f"{verb}_task", **fields)
        except HoldfastError as problem:
            if error is None:
                raise
            log.warning("%s failed, and the failure was not recorded: %s", self.terms.what, problem)
