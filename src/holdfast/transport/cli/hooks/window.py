"""A window of a host: one session of an agent, told apart from others by the session id of the host."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

from holdfast.client.lease_memory import JOB, RESERVATION, TASK, Entry, LeaseMemory
from holdfast.transport.cli.hooks.server import Server
from holdfast.transport.cli.output import print_message

LEASES_PER_REQUEST = 500
"""Bound of heartbeat_leases; a test compares it with the table of bounds."""
Held = dict[tuple[str, str], Entry]
"""Leases by kind and id."""
_ID_FIELDS = {JOB: "job_id", TASK: "task_id", RESERVATION: "reservation_id"}
_OK = 200
_NOT_NOW = {401, 403, 429}
"""Refusals of a renewal that say nothing about the lease."""
_SERVER_ERROR = 500


def memory_of(url: str, owner: str) -> LeaseMemory:
    """The lease memory of an agent, also used by the command line under this name."""
    return LeaseMemory(url, owner, lambda problem: print_message(f"holdfast: {problem}"))


def window_owner(host: str, session: str) -> str:
    """The name under which a window holds things: the agent's, and a part that differs between its windows.

    It is made from the whole session id, because the beginning of some hosts' ids is a time.
    """
    agent = os.environ.get("HOLDFAST_OWNER") or host
    return f"{agent}-{hashlib.sha256(session.encode()).hexdigest()[:8]}" if session else agent


def environment_leases() -> Held:
    """What `holdfast run` and `holdfast reserve` hold and renew for the command that this is part of."""
    found = {}
    for kind, name, lease in (
        (JOB, "HOLDFAST_JOB", "HOLDFAST_LEASE"),
        (RESERVATION, "HOLDFAST_RESERVATION", "HOLDFAST_RESERVATION_LEASE"),
    ):
        if os.environ.get(name) and os.environ.get(lease):
            found[kind, os.environ[name]] = Entry(os.environ[lease], 0.0)
    return found


class Window:
    """What a window holds: its own lease memory and, if HOLDFAST_OWNER names its agent, that of the agent too."""

    def __init__(self, url: str, host: str, session: str) -> None:
        self.owner = window_owner(host, session)
        names = dict.fromkeys([self.owner, os.environ.get("HOLDFAST_OWNER") or self.owner])
        self.memories = [memory_of(url, name) for name in names]

    def held(self) -> Held:
        """Every lease that is known."""
        known = {key: entry for memory in reversed(self.memories) for key, entry in memory.all().items()}
        return known | environment_leases()

    def leases(self) -> Iterator[tuple[LeaseMemory, str, str, str]]:
        """Those in its memories, each with the memory that has it: kind, id and lease id."""
        for memory in self.memories:
            yield from ((memory, kind, row_id, entry.lease_id) for (kind, row_id), entry in memory.all().items())

    def remember(self, document: dict[str, Any]) -> None:
        """Keep what a tool of the MCP server was granted."""
        lease_id = document.get("lease_id") or document.get("leaseId")
        known = self.held()
        for kind, row_id in (
            (JOB, document.get("job_id") or document.get("jobId")),
            (RESERVATION, document.get("reservation_id") or document.get("reservationId")),
            (TASK, document.get("id") if "leaseId" in document else None),
        ):
            if not isinstance(row_id, str) or not isinstance(lease_id, str):
                continue
            if (kind, row_id) not in known or known[kind, row_id].lease_id != lease_id:
                seconds = document.get("expires_in_seconds") or document.get("leaseDurationSeconds") or 0
                self.memories[0].remember(kind, row_id, lease_id, float(seconds))

    def renew(self, server: Server, *, all_of_it: bool = False) -> Held:
        """Renew each lease of which a third is over, and forget those that were lost; what is still held."""
        for memory in self.memories:
            _renew(server, memory, all_of_it=all_of_it)
        return self.held()


def _renew(server: Server, memory: LeaseMemory, *, all_of_it: bool) -> None:
    now = time.time()
    due = {
        key: entry.lease_id
        for key, entry in memory.all().items()
        if all_of_it or entry.until - now <= entry.seconds * 2 / 3
    }
    keys = list(due)[:LEASES_PER_REQUEST]
    if not keys:
        return
    leases = [{_ID_FIELDS[kind]: row_id, "lease_id": due[kind, row_id]} for kind, row_id in keys]
    results = server.call("heartbeat_leases", leases=leases)["results"]
    renewed, lost = {}, []
    for key, result in zip(keys, results, strict=True):
        if result["status"] == _OK:
            renewed[key] = (due[key], float(result["expires_in_seconds"]))
        elif result["status"] < _SERVER_ERROR and result["status"] not in _NOT_NOW:
            lost.append((*key, due[key]))
    memory.update(renewed, lost)
