"""Job operations as plain functions, over one client that is created on first use."""

from __future__ import annotations

import functools
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import Document


@functools.cache
def client() -> Client:
    """The shared client, with its default address and key."""
    return Client()


def claim_job(
    job_id: str, owner: str, metadata: dict[str, Any] | str | None = None, ttl: int = 120, **more: Any
) -> Document:
    """Claim a job for `ttl` seconds.

    `status` in the answer is `claimed`, `held` with the `owner`, or `done` with the `result`.
    """
    return client().claim_job(job_id, owner, metadata, ttl, **more)


def heartbeat_job(job_id: str, lease_id: str, **more: Any) -> Document:
    """Renew a job's lease; `note`, `checkpoint` and `progress` may be given."""
    return client().heartbeat_job(job_id, lease_id, **more)


def release_job(job_id: str, lease_id: str, **more: Any) -> Document:
    """Release a job; `note` and `checkpoint` are kept for the next owner."""
    return client().release_job(job_id, lease_id, **more)


def get_job_owner(job_id: str) -> Document:
    """Read the owner of a job, or how its last ownership ended."""
    return client().get_job_owner(job_id)


def list_claimed_jobs(prefix: str | None = None, **more: Any) -> Document:
    """List the jobs that are held now."""
    return client().list_claimed_jobs(prefix, **more)
