"""The three kinds of lease, for plain programs and threads: a job, the lead of an election, a task."""

from __future__ import annotations

from typing import Any

from holdfast.client.errors import Document, HoldfastError, LeaseLost
from holdfast.client.lease import Lease, log
from holdfast.client.lease_base import JobHolding, TaskHolding
from holdfast.client.worker_errors import failure, is_failure

COMPLETE_SECONDS = 30.0


class Job(JobHolding, Lease):
    """A job that is ours inside the `with` block, and the next one's after it."""

    def checkpoint(self, data: Any) -> None:
        """Leave this for the next owner, in case we do not get any further. It is kept once this returns."""
        self.renew(checkpoint=data, **self._left)


class Leader(Lease):
    """The lead of an election, for as long as we are inside the `with` block."""


class TaskLease(TaskHolding, Job):
    """A task that is ours inside the `with` block: completed at its end, failed if it raises.

    Set `result`, or call `complete`, `fail` or `release` yourself. `check()` also raises CancelRequested.
    """

    def complete(self, result: Document | None = None) -> Document:
        """Done."""
        return self._settle("complete_task", result=result)

    def fail(self, error: BaseException) -> Document:
        """It went wrong; the exception's class says whether, and when, it is tried again."""
        return self._settle("fail_task", **failure(error))

    def release(self, delay_seconds: int | None = None) -> Document:
        """Hand it back; the attempt is not counted."""
        return self._settle("release_task", delay_seconds=delay_seconds)

    def hand_back(self) -> None:
        """Release it while somebody else still works on it: that one is told that it is lost."""
        self.release()
        self._clock.refused(LeaseLost(f"{self.terms.what} was handed back"))

    def _settle(self, operation: str, **more: Any) -> Document:
        given = self.terms.proof | self._left | more
        document = self._client.call(operation, **given, deadline=COMPLETE_SECONDS)
        self._settled = True
        self._ended.set()
        return document

    def _finish(self, error: BaseException | None) -> None:
        if self._settled:
            return
        if error is None:
            self.complete(self.result)
            return
        try:
            self.fail(error) if is_failure(error) else self.release()
        except HoldfastError as trouble:
            log.warning("%s failed, and that was not told: %s", self.terms.what, trouble)
