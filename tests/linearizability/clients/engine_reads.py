"""Reads of a store, and what they found as answers."""

from __future__ import annotations

from typing import Any

from holdfast.core import lease as leases
from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation, paths_of
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract import Reader
from holdfast.store.postgres.reader import PostgresReader
from holdfast.transport.deadlines import read_one_effective
from tests.linearizability.clients.engine_calls import ACCOUNT
from tests.linearizability.history import Call


def read(call: Call, reader: Reader) -> dict[str, Any]:
    """The answer to a read."""
    # PostgreSQL reads the time before the rows, and the process may be suspended in between.
    return _READS[call.verb](call, reader) | ({} if isinstance(reader, PostgresReader) else {"now": reader.now})


def _job(call: Call, reader: Reader) -> dict[str, Any]:
    lease = read_one_effective(reader, Lease, ACCOUNT, call.args["job"])
    if lease is not None and leases.is_done(lease, reader.now):
        return {"is": "done", "result": lease.result}
    if lease is None or lease.expires_at is None or lease.expires_at <= reader.now:
        return {"is": "free"}
    return {"is": "claimed", "owner": lease.owner, "expires_at": lease.expires_at}


def _task(call: Call, reader: Reader) -> dict[str, Any]:
    task = reader.row(Task, ACCOUNT, call.args["task"])
    if task is None:
        return {"is": "absent"}
    return {"is": task.state, "attempt": task.attempt, "result": task.result}


def _reservation(call: Call, reader: Reader) -> dict[str, Any]:
    row = read_one_effective(reader, Reservation, ACCOUNT, call.args["reservation"])
    if row is None:
        return {"is": "absent"}
    if row.expires_at is None or row.expires_at <= reader.now:
        return {"is": "ended"}
    return {"is": "reserved", "owner": row.owner, "paths": list(paths_of(row)), "expires_at": row.expires_at}


def _session(call: Call, reader: Reader) -> dict[str, Any]:
    with reader.snapshot():
        session = reader.row(Session, ACCOUNT, call.args["session"])
        jobs_of_group = {job: reader.row(Lease, ACCOUNT, job) for job in call.args["jobs"]}
    shown = {job: None if row is None else row.proof for job, row in jobs_of_group.items()}
    live = session is not None and session.ended_at is None
    generation = 0 if session is None else session.generation
    return {"is": "live" if live else "over", "generation": generation, "jobs": shown}


_READS = {"read_job": _job, "read_task": _task, "read_reservation": _reservation, "read_session": _session}
