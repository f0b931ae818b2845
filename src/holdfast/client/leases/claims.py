"""How each kind of lease is claimed, and what its grant contains. Shared by both clients; nothing here sends."""

from __future__ import annotations

import random
import time
from datetime import datetime
from typing import Any, Protocol

import msgspec

from holdfast.client.errors import Document, Done, Held, HoldfastError, LeaseLost, NotFound, OutcomeUnknown
from holdfast.client.leases.clock import now
from holdfast.client.leases.state import Duration, LeaseState, Terms
from holdfast.operations.bounds import WAIT

RETRY_SECONDS = 0.2
UNCERTAIN = (LeaseLost, OutcomeUnknown)
"""Errors of a claim after which to claim again: the grant ended before its answer came, or the answer was lost."""


class Claim(Protocol):
    """How one kind of lease is claimed."""

    @property
    def operation(self) -> str:
        """Operation that claims it."""

    def arguments(self, left: float, /) -> dict[str, Any]:
        """Arguments of the operation, if `left` seconds of the wait are left."""

    def terms(self, document: Document) -> Terms | None:
        """The granted lease; None if the answer grants none."""

    def duration(self, document: Document, /) -> Duration:
        """For how long the answer to a claim or a renewal grants the lease."""

    def refusal(self, document: Document) -> HoldfastError:
        """The error to raise for an answer that grants nothing."""

    def pause(self, document: Document, /) -> float:
        """Seconds before claiming again; 0 if the server has already waited for us."""


class ClaimAttempts:
    """Decides whether and when to claim again, until the lease is granted or the wait is over. Sends nothing."""

    def __init__(self, claim: Claim, wait: float) -> None:
        self._claim = claim
        self._end = time.monotonic() + wait
        self._left, self._sent = wait, 0.0
        self._place: dict[str, Any] = {}
        """The id that keeps the place in the queue from one request to the next."""

    def arguments(self) -> dict[str, Any]:
        """Arguments of the next request, which the caller sends at once."""
        self._left, self._sent = self._end - time.monotonic(), now()
        return self._claim.arguments(self._left) | self._place

    def retry_after(self, error: HoldfastError) -> float:
        """Seconds before claiming again after an UNCERTAIN error; raises it if the wait is over."""
        if self._left <= 0:
            raise error
        return min(RETRY_SECONDS, self._left)

    def evaluate(self, document: Document) -> LeaseState | float:
        """The granted lease, or seconds before claiming again; raises the refusal if the wait is over."""
        terms = self._claim.terms(document)
        if terms is not None:
            return LeaseState(terms, self._sent)
        self._place = {"waiting_id": document["waiting_id"]} if "waiting_id" in document else {}
        left = self._end - time.monotonic()
        if left <= 0 or document.get("status") == "done":
            raise self._claim.refusal(document)
        return min(self._claim.pause(document), left)


class JobClaim(msgspec.Struct, frozen=True):
    """Claim of a job by its name, or of any of several."""

    target: dict[str, Any]
    """`job_id`, or `any_of` with an `order`."""
    owner: str
    metadata: Any
    ttl: int
    more: dict[str, Any]

    @property
    def operation(self) -> str:
        return "claim_job" if "job_id" in self.target else "claim_any_job"

    def arguments(self, left: float, /) -> dict[str, Any]:
        arguments = {"owner": self.owner, "metadata": self.metadata, "ttl_seconds": self.ttl}
        return self.target | arguments | self.more | {"wait_seconds": wait_seconds(left)}

    def terms(self, document: Document) -> Terms | None:
        if document["status"] != "claimed":
            return None
        return Terms(
            what=f"job {document['job_id']}",
            token=document["token"],
            **self.duration(document)._asdict(),
            proof=(proof := {"job_id": document["job_id"], "lease_id": document["lease_id"]}),
            renewal="heartbeat_job",
            release="release_job",
            document=document,
            entry=proof,
        )

    def duration(self, document: Document, /) -> Duration:
        return Duration(float(document["expires_in_seconds"]), float(document["heartbeat_every_seconds"]))

    def refusal(self, document: Document) -> HoldfastError:
        if document["status"] == "done":
            return Done(f"job {document['job_id']} is done since {document['at']}", document=document)
        return Held(
            f"job {document['job_id']} is held by {document.get('owner')}",
            retry_after=advised_pause(document),
            document=document,
        )

    def pause(self, _: Document, /) -> float:
        return 0.0


class LeaderClaim(msgspec.Struct, frozen=True):
    """Claim of the leadership of an election. Elections have no queue, so the client campaigns repeatedly."""

    election_id: str
    candidate: str
    metadata: str | None
    ttl: int
    operation: str = "campaign"

    def arguments(self, _: float, /) -> dict[str, Any]:
        return {
            "id": self.election_id,
            "candidate_id": self.candidate,
            "metadata": self.metadata,
            "ttl_seconds": self.ttl,
        }

    def terms(self, document: Document) -> Terms | None:
        if document["status"] != "leader":
            return None
        proof = {"id": self.election_id, "leader_token": document["leader_token"]}
        return Terms(
            what=f"election {self.election_id}",
            token=document["leader"]["term"],
            **self.duration(document)._asdict(),
            proof=proof | {"ttl_seconds": self.ttl},
            renewal="renew_leadership",
            release="resign",
            document=document,
        )

    def duration(self, document: Document, /) -> Duration:
        every = document["renew_after_ms"] / 1000
        return Duration(every * 2, every)  # the server advises to renew after half the TTL

    def refusal(self, document: Document) -> HoldfastError:
        leader = document["leader"]["candidate_id"]
        return Held(
            f"election {self.election_id} is led by {leader}",
            retry_after=advised_pause(document),
            document=document,
        )

    def pause(self, document: Document, /) -> float:
        advised = min(1.0, float(document["retry_after_ms"]) / 1000)
        return advised * random.uniform(0.5, 1.0)


class TaskClaim(msgspec.Struct, frozen=True):
    """Claim of the next task of some types."""

    types: tuple[str, ...]
    worker: str | None
    more: dict[str, Any]
    operation: str = "claim_task"

    def arguments(self, left: float, /) -> dict[str, Any]:
        return {"types": list(self.types), "worker_id": self.worker, "wait_seconds": wait_seconds(left)} | self.more

    def terms(self, document: Document) -> Terms | None:
        if document.get("leaseId") is None:
            return None
        return _task_terms(document["task"], self.duration(document))

    def duration(self, document: Document, /) -> Duration:
        advice = document["agent_contract"]
        ttl = float(advice["lease_expires_in_seconds"])
        return Duration(ttl, float(advice.get("recommended_heartbeat_interval_seconds", ttl / 3)))

    def refusal(self, document: Document) -> HoldfastError:
        if document["message"] == "busy":
            return Held(f"this session still holds task {document['inFlight']}", code="busy", document=document)
        return NotFound("no task is ready", code="no_tasks", document=document)

    def pause(self, document: Document, /) -> float:
        return 1.0 if document["message"] == "busy" else 0.0


class TaskByIdClaim(TaskClaim, frozen=True):
    """Claim of a task by its id, such as one that another worker offers."""

    task_id: str = ""
    operation: str = "claim_task_by_id"

    def arguments(self, _: float, /) -> dict[str, Any]:
        return {"id": self.task_id, "worker_id": self.worker} | self.more


def claimed_tasks(document: Document) -> list[Terms]:
    """The tasks that a claim of several granted."""
    return [_task_terms(task, _granted_duration(task)) for task in document["tasks"]]


def _task_terms(task: Document, granted: Duration) -> Terms:
    return Terms(
        what=f"task {task['id']}",
        token=task["fencingToken"],
        **granted._asdict(),
        proof={"id": task["id"], "lease_id": task["leaseId"]},
        renewal="heartbeat",
        release="release_task",
        document=task,
        entry={"task_id": task["id"], "lease_id": task["leaseId"]},
    )


def _granted_duration(task: Document) -> Duration:
    """For how long one of several tasks was granted: from its claim, which was its last change, to its deadline."""
    claimed, expires = (datetime.fromisoformat(task[name]) for name in ("updatedAt", "leaseExpiresAt"))
    ttl = min((expires - claimed).total_seconds(), float(task["leaseDurationSeconds"]))
    return Duration(ttl, ttl / 3)


def wait_seconds(left: float) -> float | None:
    """How long the server should wait, if `left` seconds of the wait are left; None if it should not."""
    return min(WAIT.most, left) if left > 0 else None


def advised_pause(document: Document) -> float:
    """Seconds after which a claim that was refused may succeed."""
    return float(document.get("retry_after_seconds", document.get("retry_after_ms", 0) / 1000))
