"""Leases for asyncio: a job, the leadership of an election, a task."""

from __future__ import annotations

from typing import Any

from holdfast.client.errors import Document, HoldfastError
from holdfast.client.leases.async_lease import AsyncLease
from holdfast.client.leases.base import JobLeaseBase, TaskLeaseBase
from holdfast.client.leases.lease import log
from holdfast.client.leases.types import COMPLETE_SECONDS
from holdfast.client.worker_errors import failure, is_failure


class AsyncJob(JobLeaseBase, AsyncLease):
    """A job that is held inside the `async with` block and released at its end."""

    async def checkpoint(self, data: Any) -> None:
        """Save data for the next owner, in case this one stops here. It is stored when this returns."""
        await self.renew(checkpoint=data, **self._handover)


class AsyncLeader(AsyncLease):
    """Leadership of an election, held inside the `async with` block."""


class AsyncTaskLease(TaskLeaseBase, AsyncJob):
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

    async def _settle(self, operation: str, **more: Any) -> Document:
        self._check_process()
        fields = self.terms.proof | self._handover | more
        document = await self._client.call(operation, **fields, deadline=COMPLETE_SECONDS)
        self._is_settled = True
        self._ended.set()
        return document

    async def _finish(self, error: BaseException | None) -> None:
        if self._is_settled:
            return
        if error is None:
            await self.complete(self.result)
            return
        try:
            await (self.fail(error) if is_failure(error) else self.release())
        except HoldfastError as problem:
            log.warning("%s failed, and the failure was not recorded: %s", self.terms.what, problem)
