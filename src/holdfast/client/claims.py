"""How each kind of lease is asked for, and what its grant says. Shared by both clients; nothing here sends."""

from __future__ import annotations

import random
from typing import Any, Protocol

import msgspec

from holdfast.client.errors import Document, Held, HoldfastError, NotFound
from holdfast.client.lease_clock import Terms

MAX_WAIT = 60.0
"""Seconds that a server stands in line for us at a time."""


class Claim(Protocol):
    """One kind of lease."""

    @property
    def operation(self) -> str:
        """What to call."""

    def arguments(self, patience: float) -> dict[str, Any]:
        """What to call it with, if we can wait for so many seconds more."""

    def terms(self, document: Document) -> Terms | None:
        """What was granted; None if nothing was."""

    def refusal(self, document: Document) -> HoldfastError:
        """Why not."""

    def pause(self, document: Document) -> float:
        """How many seconds to let pass before asking again; a server that waited for us needs none."""


class JobClaim(msgspec.Struct, frozen=True):
    """A job by its name."""

    job_id: str
    owner: str
    metadata: Any
    ttl: int
    more: dict[str, Any]
    operation: str = "claim_job"

    def arguments(self, patience: float) -> dict[str, Any]:
        given = {"job_id": self.job_id, "owner": self.owner, "metadata": self.metadata, "ttl_seconds": self.ttl}
        return given | self.more | {"wait_seconds": _wait(patience)}

    def terms(self, document: Document) -> Terms | None:
        if document["status"] != "claimed":
            return None
        return Terms(
            what=f"job {self.job_id}",
            token=document["token"],
            ttl=float(document["ttl_seconds"]),
            every=float(document["heartbeat_every_seconds"]),
            proof={"job_id": self.job_id, "lease_id": document["lease_id"]},
            renewal="heartbeat_job",
            release="release_job",
            document=document,
        )

    def refusal(self, document: Document) -> HoldfastError:
        return Held(f"job {self.job_id} is held by {document.get('owner')}", **_when(document), document=document)

    def pause(self, document: Document) -> float:  # noqa: ARG002 - it was the server who waited
        return 0.0


class LeaderClaim(msgspec.Struct, frozen=True):
    """The lead of an election. Nobody waits in line there, so we ask again and again."""

    election_id: str
    candidate: str
    metadata: str | None
    ttl: int
    operation: str = "campaign"

    def arguments(self, patience: float) -> dict[str, Any]:  # noqa: ARG002 - see pause
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
            ttl=float(self.ttl),
            every=document["renew_after_ms"] / 1000,
            proof=proof | {"ttl_seconds": self.ttl},
            renewal="renew_leadership",
            release="resign",
            document=document,
        )

    def refusal(self, document: Document) -> HoldfastError:
        leader = document["leader"]["candidate_id"]
        return Held(f"election {self.election_id} is led by {leader}", **_when(document), document=document)

    def pause(self, document: Document) -> float:
        advised = min(1.0, float(document["retry_after_ms"]) / 1000)
        return advised * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides nothing


class TaskClaim(msgspec.Struct, frozen=True):
    """The next task of some types."""

    types: tuple[str, ...]
    worker: str | None
    more: dict[str, Any]
    operation: str = "claim_task"

    def arguments(self, patience: float) -> dict[str, Any]:
        return {"types": list(self.types), "worker_id": self.worker, "wait_seconds": _wait(patience)} | self.more

    def terms(self, document: Document) -> Terms | None:
        if document.get("leaseId") is None:
            return None
        ttl = float(document["leaseDurationSeconds"])
        advice = document["agent_contract"].get("recommended_heartbeat_interval_seconds")
        return Terms(
            what=f"task {document['id']}",
            token=document["fencingToken"],
            ttl=ttl,
            every=float(advice or ttl / 3),
            proof={"id": document["id"], "lease_id": document["leaseId"]},
            renewal="heartbeat",
            release="release_task",
            document=document["task"],
        )

    def refusal(self, document: Document) -> HoldfastError:
        if document["message"] == "busy":
            return Held(f"this session has task {document['inFlight']} in flight", code="busy", document=document)
        return NotFound("there is nothing to do", code="no_tasks", document=document)

    def pause(self, document: Document) -> float:
        return 1.0 if document["message"] == "busy" else 0.0


def _wait(patience: float) -> float | None:
    return min(MAX_WAIT, patience) if patience > 0 else None


def _when(document: Document) -> dict[str, Any]:
    seconds = document.get("retry_after_seconds", document.get("retry_after_ms", 0) / 1000)
    return {"retry_after": float(seconds)}
