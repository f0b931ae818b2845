"""Documents about jobs: for the owner, for a caller that finds a job held, and for readers."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import lease as leases
from holdfast.core.lease import Ended, Lease
from holdfast.core.offer import open_offer
from holdfast.core.row import SECOND, Instant
from holdfast.engine.command import LeaseOutcome
from holdfast.engine.verbs.job_claims import Claimed, Done
from holdfast.transport.advice import jobs as job_advice
from holdfast.transport.advice.contract import Advice, prepared, seconds_left, seconds_to_wait
from holdfast.transport.deadlines import heartbeat_seconds
from holdfast.transport.http.request import encode, raw_json
from holdfast.transport.times import rfc3339, rfc3339_or_none

CLAIMED = "claimed"


def render_claim(warnings: list[str], outcome: Any) -> tuple[int, bytes]:
    """Status and body of the answer to a claim."""
    lease, now = outcome.lease, outcome.now
    if isinstance(outcome, Claimed):
        document = ownership(CLAIMED, lease, now)
        document["lease_id"] = outcome.lease_id
        document["token"] = lease.token
        every = add_ttl(document, lease, now)
        document["previous"] = _previous(outcome.previous, outcome.previous_checkpoint)
        return 200, encode(with_advice(document, warnings, holder_advice(lease, now, every)))
    if isinstance(outcome, Done):
        return 200, encode(with_advice(done_document(lease), warnings, prepared(job_advice.done, lease.id)))
    wait = seconds_to_wait(lease.expires_at or lease.available_at, now)
    document = ownership("held", lease, now)
    document["retry_after_seconds"] = wait
    document["waiting"] = outcome.waiting
    if outcome.waiting_id is not None:
        document["waiting_id"] = outcome.waiting_id
    return 200, encode(with_advice(document, warnings, prepared(job_advice.held, lease.id, wait)))


def render_renewed(warnings: list[str], outcome: LeaseOutcome) -> tuple[int, bytes]:
    """Status and body of the answer to a heartbeat."""
    lease, now = outcome.lease, outcome.now
    document = ownership(CLAIMED, lease, now)
    every = add_ttl(document, lease, now)
    return 200, encode(with_advice(document, warnings, holder_advice(lease, now, every)))


def render_offered(warnings: list[str], code: str, outcome: LeaseOutcome) -> tuple[int, bytes]:
    """Status and body of the answer to an offer: only this answer contains the code."""
    lease, now = outcome.lease, outcome.now
    document = ownership("offered", lease, now)
    document["offer"] = code
    document["ttl_seconds"] = lease.ttl // SECOND
    return 200, encode(
        with_advice(document, warnings, job_advice.offered(lease.id, seconds_left(lease.expires_at, now)))
    )


def render_withdrawn(warnings: list[str], outcome: LeaseOutcome) -> tuple[int, bytes]:
    """Status and body of the answer to a withdrawal: the caller holds the job, or its session was over."""
    if leases.is_held(outcome.lease):
        return render_renewed(warnings, outcome)
    return render_ended("released", warnings, outcome)


def render_ended(status: str, warnings: list[str], outcome: LeaseOutcome) -> tuple[int, bytes]:
    """Status and body of the answer to a release."""
    lease = outcome.lease
    document: dict[str, Any] = {
        "status": status,
        "job_id": lease.id,
        "released_at": rfc3339(outcome.now),
        "previous": _previous(leases.last_ending(lease), lease.ended_checkpoint),
    }
    return 200, encode(with_advice(document, warnings, prepared(job_advice.released, lease.id)))


def job_document(lease: Lease, now: Instant) -> dict[str, Any]:
    """A job as every reader may see it."""
    ending = leases.last_ending(lease)
    if leases.is_live(lease, now):
        document = ownership(CLAIMED, lease, now)
        contract = job_advice.held(lease.id, seconds_to_wait(lease.expires_at, now))
    elif leases.is_done(lease, now):
        document, contract = done_document(lease), job_advice.done(lease.id)
    else:
        document, contract = {"status": "free", "job_id": lease.id, "owner": None}, job_advice.free(lease.id)
        if leases.is_held(lease):  # it has expired, but the sweep has not ended it yet
            ended = leases.end(lease, leases.EXPIRED, now=lease.expires_at or now)
            ending, lease = leases.last_ending(ended), ended
    document["previous"] = _previous(ending, lease.ended_checkpoint)
    return document | {"agent_contract": contract}


def done_document(lease: Lease) -> dict[str, Any]:
    """A job whose work is done: by whom, when, with which result, and until when it counts as done."""
    ending = leases.last_ending(lease)
    return {
        "status": leases.DONE,
        "job_id": lease.id,
        "owner": None,
        "by": ending.owner if ending else None,
        "at": rfc3339_or_none(lease.done_at),
        "until": rfc3339_or_none(lease.done_until),
        "result": raw_json(lease.result),
        "note": ending.note if ending else None,
    }


def ownership(status: str, lease: Lease, now: Instant) -> dict[str, Any]:
    """What every reader may see of a job's lease: never the lease id, the token, or the code of an offer."""
    until = lease.expires_at or lease.available_at
    document: dict[str, Any] = {
        "status": status,
        "job_id": lease.id,
        "owner": lease.owner,
        "metadata": raw_json(lease.metadata),
        "claimed_at": rfc3339_or_none(lease.claimed_at),
        "expires_at": rfc3339_or_none(until),
        "expires_in_seconds": seconds_left(until, now),
        "note": lease.note,
        "progress": raw_json(lease.progress),
        "session_id": lease.session if lease.ephemeral else None,
    }
    if lease.offer is not None and (offer := open_offer(lease, now)) is not None:
        document["offered"] = {"until": rfc3339(offer.until), "to": offer.to}
    return document


def add_ttl(document: dict[str, Any], lease: Lease, now: Instant) -> float:
    """Add how long the lease is and how often to renew it; returns the latter."""
    every = heartbeat_seconds(lease, now)
    document["ttl_seconds"] = lease.ttl // SECOND
    document["heartbeat_every_seconds"] = every
    return every


def holder_advice(lease: Lease, now: Instant, every: float) -> msgspec.Raw:
    """The agent_contract of the holder, who should renew so often."""
    return prepared(job_advice.claimed, lease.id, seconds_left(lease.expires_at, now), every)


def _previous(ending: Ended | None, checkpoint: str | None) -> dict[str, Any] | None:
    """How the last lease ended, for the next owner."""
    if ending is None:
        return None
    return {
        "owner": ending.owner,
        "outcome": ending.how,
        "ended_at": rfc3339(ending.at),
        "by": ending.by if ending.how == leases.FORCED else None,
        "reason": ending.reason,
        "note": ending.note,
        "checkpoint": raw_json(checkpoint),
        "context_from": ending.context_from,
    }


def with_advice(document: dict[str, Any], warnings: list[str], contract: Advice) -> dict[str, Any]:
    """Add its warnings and agent_contract to a document."""
    if warnings:
        document["warnings"] = warnings
    document["agent_contract"] = contract
    return document
