"""The five words of a job as plain functions, over one client that is made when it is first needed."""

from __future__ import annotations

import functools
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import Document


@functools.cache
def client() -> Client:
    """The client that HOLDFAST_URL and HOLDFAST_API_KEY name."""
    return Client()


def claim_job(
    job_id: str, owner: str, metadata: dict[str, Any] | str | None = None, ttl: int = 120, **more: Any
) -> Document:
    """Own a job if nobody does, or learn who does: `status` is `claimed` or `held`. `ttl` is in seconds."""
    return client().claim_job(job_id, owner, metadata, ttl, **more)


def heartbeat_job(job_id: str, lease_id: str, **more: Any) -> Document:
    """Still at work: renew, and leave a checkpoint."""
    return client().heartbeat_job(job_id, lease_id, **more)


def release_job(job_id: str, lease_id: str, **more: Any) -> Document:
    """Done with it: let the next one have it."""
    return client().release_job(job_id, lease_id, **more)


def get_job_owner(job_id: str) -> Document:
    """Who owns a job, or how its last ownership ended."""
    return client().get_job_owner(job_id)


def list_claimed_jobs(prefix: str | None = None, **more: Any) -> Document:
    """Jobs that somebody owns right now."""
    return client().list_claimed_jobs(prefix, **more)
