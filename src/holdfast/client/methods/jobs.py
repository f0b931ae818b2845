"""Jobs: named leases with one owner at a time."""

from __future__ import annotations

from typing import Any

from holdfast.client.methods.base import Caller, R


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
    ) -> R:
        """Own a job if nobody does, or learn who does: `status` is `claimed` or `held`. `ttl` is in seconds."""
        return self.call(
            "claim_job",
            job_id=job_id,
            owner=owner,
            metadata=metadata,
            ttl_seconds=ttl,
            wait_seconds=wait_seconds,
            session_id=session_id,
            session_lease_id=session_lease_id,
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
    ) -> R:
        """Still at work: renew, and leave a checkpoint."""
        return self.call(
            "heartbeat_job",
            job_id=job_id,
            lease_id=lease_id,
            token=token,
            ttl_seconds=ttl_seconds,
            note=note,
            checkpoint=checkpoint,
            progress=progress,
        )

    def release_job(
        self, job_id: str, lease_id: str, *, token: int | None = None, note: str | None = None, checkpoint: Any = None
    ) -> R:
        """Done with it: let the next one have it."""
        return self.call("release_job", job_id=job_id, lease_id=lease_id, token=token, note=note, checkpoint=checkpoint)

    def force_release_job(self, job_id: str, reason: str) -> R:
        """Take a job from its holder."""
        return self.call("force_release_job", job_id=job_id, reason=reason)

    def get_job_owner(self, job_id: str) -> R:
        """Who owns a job, or how its last ownership ended."""
        return self.call("get_job_owner", job_id=job_id)

    def list_claimed_jobs(self, prefix: str | None = None, *, limit: int | None = None, cursor: str | None = None) -> R:
        """Jobs that somebody owns right now."""
        return self.call("list_claimed_jobs", limit=limit, prefix=prefix, cursor=cursor)
