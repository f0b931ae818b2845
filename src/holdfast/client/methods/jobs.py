"""Jobs: named leases with one owner at a time."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.client.methods.base import Caller, R
from holdfast.operations.bounds import DONE_FOR


class JobMethods(Caller[R]):
    """Jobs: named leases with one owner at a time."""

    def claim_job(
        self,
        job_id: str,
        owner: str,
        metadata: dict[str, Any] | str | None = None,
        ttl: int = 120,
        *,
        wait_seconds: float | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
        waiting_id: str | None = None,
        again: bool | None = None,
        offer: str | None = None,
    ) -> R:
        """Claim a job, or read its owner if it is held. `ttl` is in seconds; `wait_seconds` waits in the job's queue.

        `status` in the answer is `claimed`, with `lease_id`, `token` and what the `previous` owner left; `held`, with
        the `owner`; or `done`, with the `result`, unless you claim it `again`. With the code of an `offer` you take
        it over from its holder. See `Client.job` for a claim that is renewed and released for you.
        """
        return self.call(
            "claim_job",
            job_id=job_id,
            owner=owner,
            metadata=metadata,
            ttl_seconds=ttl,
            wait_seconds=wait_seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
            waiting_id=waiting_id,
            again=again,
            offer=offer,
        )

    def claim_any_job(
        self,
        any_of: list[str],
        owner: str,
        metadata: dict[str, Any] | str | None = None,
        ttl: int = 120,
        *,
        order: str | None = None,
        wait_seconds: float | None = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
        waiting_id: str | None = None,
        again: bool | None = None,
    ) -> R:
        """Claim the first of several jobs that is free, in the given `order` or a `random` one.

        The answer is that of `claim_job`; its `job_id` says which one it is.
        """
        return self.call(
            "claim_any_job",
            any_of=any_of,
            owner=owner,
            metadata=metadata,
            ttl_seconds=ttl,
            order=order,
            wait_seconds=wait_seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
            waiting_id=waiting_id,
            again=again,
        )

    def heartbeat_job(
        self,
        job_id: str,
        lease_id: str,
        *,
        token: int | None = None,
        ttl_seconds: int | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        progress: Any = None,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Renew a job's lease; `note` and `checkpoint` are kept for the next owner, `progress` is visible to others."""
        return self.call(
            "heartbeat_job",
            job_id=job_id,
            lease_id=lease_id,
            token=token,
            ttl_seconds=ttl_seconds,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def heartbeat_leases(self, leases: list[dict[str, Any]]) -> R:
        """Renew up to 500 leases of jobs, tasks and files in one transaction.

        Each has a `lease_id` and a `job_id`, `task_id` or `reservation_id`, and jobs and tasks optionally a `note`;
        `results` has one entry for each.
        """
        return self.call("heartbeat_leases", leases=leases)

    def release_job(
        self,
        job_id: str,
        lease_id: str,
        *,
        token: int | None = None,
        note: str | None = None,
        checkpoint: Any = None,
        outcome: str | None = None,
        result: Any = None,
        done_for_seconds: int | None = DONE_FOR.default,
        session_id: str | None = None,
        session_lease_id: str | None = None,
    ) -> R:
        """Release a job; `note` and `checkpoint` are kept for the next owner.

        `outcome` is `free`, `failed` or `done`: a done job cannot be claimed for `done_for_seconds` (None: never), and
        whoever tries gets the `result`.
        """
        return self.call(
            "release_job",
            job_id=job_id,
            lease_id=lease_id,
            token=token,
            note=note,
            checkpoint=checkpoint,
            outcome=outcome,
            result=result,
            done_for_seconds=done_for(done_for_seconds) if outcome == "done" else None,
            session_id=session_id,
            session_lease_id=session_lease_id,
        )

    def offer_job(
        self,
        job_id: str,
        lease_id: str,
        *,
        note: str | None = None,
        checkpoint: Any = None,
        expires_in_seconds: int | None = None,
        to: str | None = None,
    ) -> R:
        """Offer a job to a worker that gets its code: it takes over by claiming the job with the `offer` of the answer.

        The lease lasts until the end of the offer, so you may stop. `to` names the only session that may accept.
        """
        return self.call(
            "offer_job",
            job_id=job_id,
            lease_id=lease_id,
            note=note,
            checkpoint=checkpoint,
            expires_in_seconds=expires_in_seconds,
            to=to,
        )

    def withdraw_job_offer(self, job_id: str, lease_id: str) -> R:
        """Withdraw the offer of a job: its ordinary TTL counts from now."""
        return self.call("withdraw_job_offer", job_id=job_id, lease_id=lease_id)

    def force_release_job(self, job_id: str, reason: str) -> R:
        """Release a job that another worker holds; needs a key with the scope `admin`."""
        return self.call("force_release_job", job_id=job_id, reason=reason)

    def get_job_owner(self, job_id: str) -> R:
        """Read the owner of a job, or how its last ownership ended."""
        return self.call("get_job_owner", job_id=job_id)

    def list_claimed_jobs(
        self,
        prefix: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: str | None = None,
    ) -> R:
        """List the jobs that are held now, or with the `state` `done` those that are done."""
        return self.call("list_claimed_jobs", limit=limit, prefix=prefix, cursor=cursor, state=state)


def done_for(seconds: int | None) -> int | msgspec.Raw:
    """The field `done_for_seconds`: null means for good, and must be sent."""
    return msgspec.Raw(b"null") if seconds is None else seconds
