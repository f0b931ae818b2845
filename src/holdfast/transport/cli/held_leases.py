"""Lease ids that verbs remember from one call to the next, so that `holdfast release NAME` needs no --lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from holdfast.client.errors import LeaseLost
from holdfast.client.lease_memory import JOB, RESERVATION, TASK, LeaseMemory
from holdfast.owner import default_owner
from holdfast.transport.cli.credentials import address_of
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation

Arguments = dict[str, Any]


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
    **dict.fromkeys(("complete_task", "fail_task", "release_task"), _TASK._replace(ends=True)),
}


def find_lease(operation: str, arguments: Arguments) -> str | None:
    """The remembered lease id for a verb of a holder, if there is one."""
    use = HOLDERS.get(operation)
    if use is None or arguments.get(use.id_field) is None:
        return None
    return _memory(use, arguments).find(use.kind, arguments[use.id_field])


@contextmanager
def remembering(invocation: Invocation) -> Iterator[Callable[[Arguments], None]]:
    """A function that remembers a claim or a renewal by its answer; a lease that is over is forgotten."""
    operation, arguments = invocation.verb.operation, invocation.arguments
    use = CLAIMS.get(operation) or HOLDERS.get(operation)
    if use is None:
        yield lambda _: None
        return
    memory = _memory(use, arguments)
    if operation in HOLDERS:
        arguments.pop("owner", None)  # it only says whose memory to use
    row_id, lease_id = arguments.get(use.id_field), arguments.get("lease_id")

    def remember(answer: Arguments) -> None:
        if operation in CLAIMS:
            _remember_claim(memory, use, answer)
        elif row_id is not None and lease_id is not None:
            if use.ends or answer.get("status") == "released":
                memory.forget(use.kind, row_id, lease_id)
            elif memory.find(use.kind, row_id) == lease_id:
                memory.remember(use.kind, row_id, lease_id, _seconds_left(answer))

    try:
        yield remember
    except LeaseLost:
        if row_id is not None and lease_id is not None:
            memory.forget(use.kind, row_id, lease_id)
        raise


def _remember_claim(memory: LeaseMemory, use: Use, answer: Arguments) -> None:
    lease_id = answer.get("lease_id") or answer.get("leaseId")
    row_id = answer.get("job_id") or answer.get("reservation_id") or answer.get("id")
    if isinstance(lease_id, str) and isinstance(row_id, str):
        memory.remember(use.kind, row_id, lease_id, _seconds_left(answer))


def _seconds_left(answer: Arguments) -> float:
    """How long the lease lasts: a job's answer says it, a task's has its length."""
    return float(answer.get("expires_in_seconds") or answer.get("leaseDurationSeconds") or 0)


def _memory(use: Use, arguments: Arguments) -> LeaseMemory:
    owner = arguments.get(use.owner_field) or default_owner()
    return LeaseMemory(address_of(arguments.get("url")), owner, _report)


def _report(problem: str) -> None:
    print_message(f"holdfast: {escape(problem)}")
