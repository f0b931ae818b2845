"""Leases for threads: a job, the leadership of an election, a task."""

from __future__ import annotations

from typing import Any

from holdfast.client.errors import Document, HoldfastError, LeaseLost
from holdfast.client.leases.base import JobLeaseBase, TaskLeaseBase
from holdfast.client.leases.lease import Lease, log
from holdfast.client.worker_errors import failure, is_failure

COMPLETE_SECONDS = 30.0
"""Limit for all attempts to record the outcome of a task."""


class Job(JobLeaseBase, Lease):
    """A job that is held inside the `with` block and released at its end."""

    def checkpoint(self, data: Any) -> None:
        """Save data for the next owner, in case this one stops here. It is stored when this returns."""
        self.renew(checkpoint=data, **self._handover)


class Leader(Lease):
    """Leadership of an election, held inside the `with` block."""


class TaskLease(TaskLeaseBase, Job):
    """A task that is held inside the `with` block: completed at its end, failed if the block raises.

    Set `result`, or call `complete`, `fail` or `release` yourself. `check()` also raises CancelRequested.
    """

    def complete(self, result: Document | None = None) -> Document:
        """Complete the task with a result."""
        return self._settle("complete_task", result=result)

    def fail(self, error: BaseException) -> Document:
        """Fail the attempt. The exception's class decides if and when it is retried: see `Retry`, `Permanent`."""
        return self._settle("fail_task", **failure(error))

    def release(self, delay_seconds: int | None = None) -> Document:
        """Return the task to its queue; the attempt is not counted."""
        return self._settle("release_task", delay_seconds=delay_seconds)

    def hand_back(self) -> None:
        """Release the task while another thread still works on it: its next `check()` raises LeaseLost."""
        self.release()
        self._state.refused(LeaseLost(f"{self.terms.what} was returned to its queue"))

    def _settle(self, operation: str, **more: Any) -> Document:
        self._check_process()
        fields = self.terms.proof | self._handover | more
        document = self._client.call(operation, **fields, deadline=COMPLETE_SECONDS)
        self._is_settled = True
        self._ended.set()
        return document

    def _finish(self, error: BaseException | None) -> None:
        if self._is_settled:
            return
        if error is None:
            self.complete(self.result)
            return
        try:
            self.fail(error) if is_failure(error) else self.release()
        except HoldfastError as problem:
            log.warning("%s failed, and the failure was not recorded: %s", self.terms.what, problem)
