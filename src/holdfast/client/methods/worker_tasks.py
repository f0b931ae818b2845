"""Tasks for workers: claim, renew, complete, fail and release them."""

from __future__ import annotations

from typing import Any

from holdfast.client.methods.base import Caller, R


class WorkerTaskMethods(Caller[R]):
    """Tasks for workers: claim, renew, complete, fail and release them."""

    def claim_task(
        self,
        *,
        type: str | None = None,
        types: list[str] | None = None,
        worker_id: str | None = None,
        limit: int | None = None,
        wait_seconds: float | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
        lease_duration_seconds: int | None = None,
        capabilities: list[str] | None = None,
    ) -> R:
        """Claim the next task of some types; `wait_seconds` waits for one.

        `lease_duration_seconds` lengthens the lease, for this claim and its renewals; it never shortens it.
        `capabilities` are what you can do: you get no task that requires anything else.

        See `Client.task` and `Worker` for claims that are renewed and finished for you.
        """
        return self.call(
            "claim_task",
            type=type,
            types=types,
            worker_id=worker_id,
            limit=limit,
            wait_seconds=wait_seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
            lease_duration_seconds=lease_duration_seconds,
            capabilities=capabilities,
        )

    def claim_task_by_id(
        self,
        task_id: str,
        *,
        worker_id: str | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
        offer: str | None = None,
        lease_duration_seconds: int | None = None,
        capabilities: list[str] | None = None,
    ) -> R:
        """Claim a task by its id; with the code of an `offer` you take it over from its holder."""
        return self.call(
            "claim_task_by_id",
            id=task_id,
            worker_id=worker_id,
            session_id=session_id,
            session_lease_id=session_lease_id,
            offer=offer,
            lease_duration_seconds=lease_duration_seconds,
            capabilities=capabilities,
        )

    def heartbeat(
        self,
        task_id: str,
        *,
        lease_id: str | None = None,
        fencing_token: int | None = None,
        worker_id: str | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        progress: Any = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Renew the lease of a task."""
        return self.call(
            "heartbeat",
            id=task_id,
            lease_id=lease_id,
            fencing_token=fencing_token,
            worker_id=worker_id,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def complete_task(
        self,
        task_id: str,
        *,
        lease_id: str | None = None,
        fencing_token: int | None = None,
        worker_id: str | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        progress: Any = None,
        result: dict[str, Any] | None = None,
        output_id: str | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Complete a task with its result."""
        return self.call(
            "complete_task",
            id=task_id,
            lease_id=lease_id,
            fencing_token=fencing_token,
            worker_id=worker_id,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
            result=result,
            output_id=output_id,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def fail_task(
        self,
        task_id: str,
        *,
        lease_id: str | None = None,
        fencing_token: int | None = None,
        worker_id: str | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        progress: Any = None,
        reason: str | None = None,
        error_code: str | None = None,
        retry_after_seconds: int | None = None,
        permanent: bool | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Fail the current attempt at a task: it is retried, or becomes a dead letter.

        It becomes a dead letter if `permanent` is true, or after the last attempt.
        """
        return self.call(
            "fail_task",
            id=task_id,
            lease_id=lease_id,
            fencing_token=fencing_token,
            worker_id=worker_id,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
            reason=reason,
            error_code=error_code,
            retry_after_seconds=retry_after_seconds,
            permanent=permanent,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def release_task(
        self,
        task_id: str,
        *,
        lease_id: str | None = None,
        fencing_token: int | None = None,
        worker_id: str | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        progress: Any = None,
        delay_seconds: int | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Return a task to its queue; the attempt is not counted."""
        return self.call(
            "release_task",
            id=task_id,
            lease_id=lease_id,
            fencing_token=fencing_token,
            worker_id=worker_id,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
            delay_seconds=delay_seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def snooze_task(
        self,
        task_id: str,
        seconds: int,
        *,
        lease_id: str | None = None,
        fencing_token: int | None = None,
        worker_id: str | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        progress: Any = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Return a task to its queue until later; the attempt is not counted."""
        return self.call(
            "snooze_task",
            id=task_id,
            lease_id=lease_id,
            fencing_token=fencing_token,
            worker_id=worker_id,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
            seconds=seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def offer_task(
        self,
        task_id: str,
        lease_id: str,
        *,
        note: str | None = None,
        checkpoint: Any = None,
        expires_in_seconds: int | None = None,
        to: str | None = None,
    ) -> R:
        """Offer a task to a worker that gets its code: it claims the task by its id with the `offer` of the answer.

        The lease lasts until the end of the offer, so you may stop. `to` names the only session that may accept.
        """
        return self.call(
            "offer_task",
            id=task_id,
            lease_id=lease_id,
            note=note,
            checkpoint=checkpoint,
            expires_in_seconds=expires_in_seconds,
            to=to,
        )

    def withdraw_task_offer(self, task_id: str, lease_id: str) -> R:
        """Withdraw the offer of a task: its ordinary lease counts from now."""
        return self.call("withdraw_task_offer", id=task_id, lease_id=lease_id)
