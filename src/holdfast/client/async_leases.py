"""The three kinds of lease, for programs with an event loop: a job, the lead of an election, a task."""

from __future__ import annotations

from typing import Any

from holdfast.client.async_lease import AsyncLease
from holdfast.client.errors import Document, HoldfastError
from holdfast.client.lease import log
from holdfast.client.lease_base import JobHolding, TaskHolding
from holdfast.client.leases import COMPLETE_SECONDS
from holdfast.client.worker_errors import failure, is_failure


class AsyncJob(JobHolding, AsyncLease):
    """A job that is ours inside the `async with` block, and the next one's after it."""

    async def checkpoint(self, data: Any) -> None:
        """Leave this for the next owner, in case we do not get any further. It is kept once this returns."""
        await self.renew(checkpoint=data, **self._left)


class AsyncLeader(AsyncLease):
    """The lead of an election, for as long as we are inside the `async with` block."""


class AsyncTaskLease(TaskHolding, AsyncJob):
    """A task that is ours inside the `async with` block: completed at its end, failed if it raises.

    Set `result`, or call `complete`, `fail` or `release` yourself. `check()` also raises CancelRequested.
    """

    async def complete(self, result: Document | None = None) -> Document:
        """Done."""
        return await self._settle("complete_task", result=result)

    async def fail(self, error: BaseException) -> Document:
        """It went wrong; the exception's class says whether, and when, it is tried again."""
        return await self._settle("fail_task", **failure(error))

    async def release(self, delay_seconds: int | None = None) -> Document:
        """Hand it back; the attempt is not counted."""
        return await self._settle("release_task", delay_seconds=delay_seconds)

    async def _settle(self, operation: str, **more: Any) -> Document:
        given = self.terms.proof | self._left | more
        document = await self._client.call(operation, **given, deadline=COMPLETE_SECONDS)
        self._settled = True
        self._ended.set()
        return document

    async def _finish(self, error: BaseException | None) -> None:
        if self._settled:
            return
        if error is None:
            await self.complete(self.result)
            return
        try:
            await (self.fail(error) if is_failure(error) else self.release())
        except HoldfastError as trouble:
            log.warning("%s failed, and that was not told: %s", self.terms.what, trouble)
