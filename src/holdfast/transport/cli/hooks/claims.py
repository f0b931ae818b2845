"""Which files an agent may change: not what another agent has reserved, nor a file that is another agent's job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.client.lease_memory import JOB, RESERVATION
from holdfast.transport.cli.hooks.server import Refused, Server
from holdfast.transport.cli.hooks.window import Held
from holdfast.transport.cli.output import escape

PATHS_PER_REQUEST, LEASES_PER_REQUEST, JOBS_PER_PAGE, MAX_PATH = 1000, 100, 1000, 512
"""Bounds of the requests; a test compares them with the table of bounds."""
_FEW = 4
"""So many jobs are read one by one; for more, all held jobs are listed."""
_MOST_NAMED = 10


class Conflict(NamedTuple):
    """Why an agent must not change a file."""

    path: str
    reason: str


def find_conflicts(
    server: Server, space: str | None, paths: list[str], own: Held, *, require_claim: bool
) -> list[Conflict]:
    """What keeps the agent that holds `own` from changing these files, relative to the root of their repository."""
    found: list[Conflict] = []
    claimed: set[str] = set()
    if space is not None:
        for file in _check_files(server, space, paths, own):
            others = [row for row in file["reserved_by"] if not row["yours"]]
            found += [Conflict(file["path"], f"reserved by {_holder(row)}") for row in others]
            if any(row["yours"] and row["mode"] == "exclusive" for row in file["reserved_by"]):
                claimed.add(file["path"])
    for job in _held_jobs(server, paths):
        if _is_own_job(server, job["job_id"], own):
            claimed.add(job["job_id"])
        else:
            found.append(Conflict(job["job_id"], f"a job that is held by {_holder(job)}"))
    if require_claim:
        blocked = {conflict.path for conflict in found}
        unclaimed = [path for path in paths if path not in claimed | blocked]
        found += [Conflict(path, "not claimed by you: reserve it first") for path in unclaimed]
    return found


def describe(conflicts: list[Conflict]) -> str:
    """One sentence for each file, and what to do."""
    lines = [f"{escape(path)} is {reason}." for path, reason in conflicts[:_MOST_NAMED]]
    lines += [f"So are {len(conflicts) - _MOST_NAMED} more."] if len(conflicts) > _MOST_NAMED else []
    return "\n".join([*lines, "Leave it alone: do other work, or wait until it is free."])


def _check_files(server: Server, space: str, paths: list[str], own: Held) -> Iterator[dict[str, Any]]:
    """The answer of the server for each path."""
    leases = [entry.lease_id for (kind, _), entry in own.items() if kind == RESERVATION]
    sent = {_checkable(path): path for path in paths}
    for start in range(0, len(sent), PATHS_PER_REQUEST):
        some = list(sent)[start : start + PATHS_PER_REQUEST]
        answer = server.call("check_files", space=space, paths=some, lease_ids=leases[-LEASES_PER_REQUEST:])
        yield from (file | {"path": sent[file["path"]]} for file in answer["files"])


def _checkable(path: str) -> str:
    """A path that the server accepts: of one that it does not, the folder still tells who has reserved it."""
    return "".join(letter if letter.isprintable() else "_" for letter in path)[:MAX_PATH].rstrip("/")


def _held_jobs(server: Server, paths: list[str]) -> Iterator[dict[str, Any]]:
    """The jobs that are held and whose ids are these paths."""
    if len(paths) <= _FEW:
        for path in paths:
            try:
                job = server.call("get_job_owner", path)
            except Refused:  # no valid job id
                continue
            if job["status"] == "claimed":
                yield job
        return
    wanted, cursor = set(paths), ""
    while True:
        page = server.call("list_claimed_jobs", limit=JOBS_PER_PAGE, **({"cursor": cursor} if cursor else {}))
        yield from (job for job in page["jobs"] if job["job_id"] in wanted)
        if not page["hasMore"]:
            return
        cursor = page["nextCursor"]


def _is_own_job(server: Server, job_id: str, own: Held) -> bool:
    """Whether the agent holds it: its lease id is the only proof, so the lease is renewed with it."""
    entry = own.get((JOB, job_id))
    if entry is None:
        return False
    answer = server.call("heartbeat_leases", leases=[{"job_id": job_id, "lease_id": entry.lease_id}])
    return bool(answer["succeeded"])


def _holder(row: dict[str, Any]) -> str:
    """Who has it, until when, and why. Others wrote the names: they are quoted."""
    reason = f', for "{escape(row["reason"])}"' if row.get("reason") else ""
    return f'"{escape(row["owner"] or "")}" until {row["expires_at"]} (in {row["expires_in_seconds"]} s){reason}'
