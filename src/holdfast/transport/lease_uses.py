"""How operations use leases: which grant one, which need that of a holder, and which end it.

With these tables a program that keeps a lease memory knows what to remember of an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.client.lease_memory import JOB, RESERVATION, TASK, LeaseMemory

Answer = Mapping[str, Any]


class Use(NamedTuple):
    """How an operation uses a lease."""

    kind: str
    id_field: str
    owner_field: str
    ends: bool = False
    """Whether its success ends the lease."""


_JOB = Use(JOB, "job_id", "owner")
_TASK = Use(TASK, "id", "worker_id")
_FILES = Use(RESERVATION, "id", "owner")
CLAIMS = {
    "claim_job": _JOB,
    "claim_any_job": _JOB,
    "claim_task": _TASK,
    "claim_task_by_id": _TASK,
    "reserve_files": _FILES,
    "claim_reservation": _FILES,
}
HOLDERS = {
    "heartbeat_job": _JOB,
    "release_job": _JOB._replace(ends=True),
    "offer_job": _JOB,
    "heartbeat_reservation": _FILES,
    "extend_reservation": _FILES,
    "offer_reservation": _FILES,
    "release_files": _FILES,
    "heartbeat": _TASK,
    **dict.fromkeys(("complete_task", "fail_task", "release_task", "ask_task"), _TASK._replace(ends=True)),
}


def remember_claim(memory: LeaseMemory, use: Use, answer: Answer) -> None:
    """Remember what a claim was granted: one lease, or several tasks."""
    for granted in answer.get("tasks") or [answer]:
        lease_id = granted.get("lease_id") or granted.get("leaseId")
        row_id = granted.get("job_id") or granted.get("reservation_id") or granted.get("id")
        if isinstance(lease_id, str) and isinstance(row_id, str):
            memory.remember(use.kind, row_id, lease_id, seconds_left(granted))


def remember_write(memory: LeaseMemory, use: Use, row_id: str, lease_id: str, answer: Answer) -> None:
    """Remember the write of a holder: the lease is renewed, or over."""
    if use.ends or answer.get("status") == "released":
        memory.forget(use.kind, row_id, lease_id)
    else:
        memory.renew(use.kind, row_id, lease_id, seconds_left(answer))


def seconds_left(answer: Answer) -> float:
    """How long the lease lasts: a job's answer says it, a task's has its length."""
    return float(answer.get("expires_in_seconds") or answer.get("leaseDurationSeconds") or 0)
