"""How a job is shown: to its owner, to those who find it held, to whoever looks."""

from __future__ import annotations

from typing import Any

from holdfast.core import lease as leases
from holdfast.core.lease import Ended, Lease
from holdfast.core.row import SECOND, Instant
from holdfast.engine.command import LeaseOutcome
from holdfast.engine.verbs.jobs import Claimed
from holdfast.transport.advice import jobs as job_advice
from holdfast.transport.advice.contract import Contract, seconds_left, seconds_to_wait
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import encode, raw_json, warned
from holdfast.transport.times import rfc3339, rfc3339_or_none


def render_claim(ctx: HandlerContext, warnings: list[str], outcome: Any) -> tuple[int, bytes]:
    lease, now = outcome.lease, outcome.now
    if isinstance(outcome, Claimed):
        document = {
            "status": "claimed",
            **ownership(lease, now),
            "lease_id": outcome.lease_id,
            "token": lease.token,
            **pace(lease),
            "previous": _previous(outcome.previous, outcome.previous_checkpoint),
        }
        return 200, encode(finish(document, warnings, holding(lease, now)))
    wait = seconds_to_wait(lease.expires_at or lease.available_at, now)
    document = {"status": "held", **ownership(lease, now), "retry_after_seconds": wait}
    document["waiting"] = ctx.engine.name_waiters.length(lease.key)
    return 200, encode(finish(document, warnings, job_advice.held(lease.id, wait)))


def render_ended(status: str, warnings: list[str], outcome: LeaseOutcome) -> tuple[int, bytes]:
    lease = outcome.lease
    document = {
        "status": status,
        "job_id": lease.id,
        "released_at": rfc3339(outcome.now),
        "previous": _previous(leases.last_ending(lease), lease.ended_checkpoint),
    }
    return 200, encode(finish(document, warnings, job_advice.released(lease.id)))


def state(lease: Lease, now: Instant) -> dict[str, Any]:
    story = leases.last_ending(lease)
    if leases.is_live(lease, now):
        document = {"status": "claimed", **ownership(lease, now)}
        contract = job_advice.held(lease.id, seconds_to_wait(lease.expires_at, now))
    else:
        document, contract = {"status": "free", "job_id": lease.id, "owner": None}, job_advice.free(lease.id)
        if leases.is_held(lease):  # its time ran out a moment ago and nobody has tidied up yet
            ended = leases.end(lease, leases.EXPIRED, now=lease.expires_at or now)
            story, lease = leases.last_ending(ended), ended
    document["previous"] = _previous(story, lease.ended_checkpoint)
    return document | {"agent_contract": contract}


def ownership(lease: Lease, now: Instant) -> dict[str, Any]:
    """What anybody may see of who owns a job; never the lease id, never the token."""
    return {
        "job_id": lease.id,
        "owner": lease.owner,
        "metadata": raw_json(lease.metadata),
        "claimed_at": rfc3339_or_none(lease.claimed_at),
        "expires_at": rfc3339_or_none(lease.expires_at or lease.available_at),
        "expires_in_seconds": seconds_left(lease.expires_at or lease.available_at, now),
        "note": lease.note,
        "progress": raw_json(lease.progress),
        "session_id": lease.session if lease.ephemeral else None,
    }


def pace(lease: Lease) -> dict[str, Any]:
    return {"ttl_seconds": lease.ttl // SECOND, "heartbeat_every_seconds": _every(lease)}


def _every(lease: Lease) -> float:
    pace = leases.renewal_interval(lease.ttl)
    return pace // SECOND if pace >= SECOND else round(pace / SECOND, 3)


def holding(lease: Lease, now: Instant) -> Contract:
    return job_advice.claimed(lease.id, seconds_left(lease.expires_at, now), _every(lease))


def _previous(story: Ended | None, checkpoint: str | None) -> dict[str, Any] | None:
    """How the last ownership ended, for a successor."""
    if story is None:
        return None
    return {
        "owner": story.owner,
        "outcome": story.how,
        "ended_at": rfc3339(story.at),
        "by": story.by if story.how == leases.FORCED else None,
        "reason": story.reason,
        "note": story.note,
        "checkpoint": raw_json(checkpoint),
        "context_from": story.context_from,
    }


def finish(document: dict[str, Any], warnings: list[str], contract: Contract) -> dict[str, Any]:
    """What every answer about a job ends with."""
    return warned(document, warnings) | {"agent_contract": contract}
