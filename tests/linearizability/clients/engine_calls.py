"""Calls as commands of the engine, and its outcomes as answers."""

from __future__ import annotations

from typing import Any

from holdfast.core import lease as leases
from holdfast.core.errors import (
    Conflict,
    LeaseLost,
    OfferRefused,
    SessionExpired,
    SessionMissing,
    SessionTaken,
    Trouble,
)
from holdfast.core.event import Cause
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Command, Held
from holdfast.engine.verbs import job_claims, job_offers, jobs, sessions
from holdfast.engine.verbs.tasks import claiming, creating, holding
from holdfast.store.contract import Reader
from holdfast.store.postgres.reader import PostgresReader
from holdfast.transport.deadlines import read_one_effective
from tests.linearizability.history import Call, proof_of

ACCOUNT = "default"
BY = Principal(ACCOUNT, "worker", version=1, name="worker", key_hash="hash")


def fill_ids(call: Call) -> None:
    """Choose the random values of a call: its lease id, or the seed that its lease ids are made from."""
    args = call.args
    if call.verb == "claim_job":
        args["lease_id"] = args["holder"] = f"lease of {call.id}"
        if args.get("session") is not None:
            held = Lease(ACCOUNT, args["job"], holder=args["holder"])
            args["lease_id"] = held_lease_id(args["session_lease_id"], held)
        args["proof"] = proof_of(args["lease_id"])
    elif call.verb == "claim_task":
        args["seed"] = call.id
    elif call.verb == "offer_job":
        args["code"] = f"code of {call.id}"
        args["code_proof"] = proof_of(args["code"])
    elif call.verb == "open_session":
        args["new_secret"] = f"secret of {call.id}"
        args["fresh_secret"] = proof_of(args["new_secret"])


def command_of(call: Call) -> Command[Any]:
    """The command that asks for it."""
    common: dict[str, Any] = {"account": ACCOUNT, "cause": Cause("worker", call.id)}
    verb, fields = _COMMANDS[call.verb]
    return verb(**common, **fields(call.args))


def _claim_job(args: dict[str, Any]) -> dict[str, Any]:
    named = {"name": args["job"], "lease_id": args["lease_id"], "holder": args["holder"], "owner": args["owner"]}
    more = {"again": args["again"], "offer": args.get("code")}
    return {"by": BY, "ttl": args["ttl"], **more, **named, **_for_session(args)}


def _claim_task(args: dict[str, Any]) -> dict[str, Any]:
    worker = {"by": BY, "worker": args["owner"], "seed": args["seed"].encode()}
    return {"types": (args["queue"],), "limit": 1, **worker, **_for_session(args)}


def _for_session(args: dict[str, Any]) -> dict[str, Any]:
    return {"session_id": args.get("session"), "session_lease_id": args.get("session_lease_id")}


def _create_task(args: dict[str, Any]) -> dict[str, Any]:
    more = {"max_attempts": args["max_attempts"], "lease_duration": args["ttl"]}
    return {"task": Task(ACCOUNT, args["task"], type=args["queue"], **more)}


def _open_session(args: dict[str, Any]) -> dict[str, Any]:
    secrets = {"secret": args["given"], "fresh_secret": args["new_secret"]}
    return {"by": BY, "session_id": args["session"], "name": args["session"], "ttl": args["ttl"], **secrets}


def _job(args: dict[str, Any]) -> dict[str, Any]:
    return {"name": args["job"], "lease_id": args["lease_id"]}


def _release_job(args: dict[str, Any]) -> dict[str, Any]:
    return _job(args) | ({"how": "done", "result": args["result"]} if "result" in args else {})


def _task(args: dict[str, Any]) -> dict[str, Any]:
    return {"task_id": args["task"], "lease_id": args["lease_id"]}


def _session(args: dict[str, Any]) -> dict[str, Any]:
    return {"by": BY, "session_id": args["session"], "lease_id": args["lease_id"]}


_COMMANDS: dict[str, tuple[Any, Any]] = {
    "claim_job": (job_claims.ClaimJob, _claim_job),
    "heartbeat_job": (jobs.HeartbeatJob, _job),
    "release_job": (jobs.ReleaseJob, _release_job),
    "offer_job": (job_offers.OfferJob, lambda args: {**_job(args), "code": args["code"], "lasts": args["lasts"]}),
    "create_task": (creating.CreateTask, _create_task),
    "claim_task": (claiming.ClaimTasks, _claim_task),
    "heartbeat_task": (holding.HeartbeatTask, _task),
    "complete_task": (holding.CompleteTask, lambda args: {**_task(args), "result": args["result"]}),
    "fail_task": (holding.FailTask, _task),
    "release_task": (holding.HandBackTask, _task),
    "open_session": (sessions.BeginSession, _open_session),
    "heartbeat_session": (sessions.HeartbeatSession, _session),
    "end_session": (sessions.CloseSession, _session),
}


DONE = {
    "heartbeat_task": "renewed",
    "complete_task": "completed",
    "fail_task": "failed",
    "release_task": "released",
    "create_task": "created",
}


def answer_of(call: Call, outcome: Any) -> dict[str, Any] | None:
    """The answer to it; None if its outcome is unknown."""
    if isinstance(outcome, BaseException):
        return _refusal(call, outcome)
    shown: dict[str, Any]
    match outcome:
        case job_claims.Claimed():
            shown = {"is": "granted", **_ids(outcome.lease_id), **_lease(outcome.lease)}
        case Held():
            shown = {"is": "held", "owner": outcome.lease.owner, "expires_at": outcome.lease.expires_at}
        case job_claims.Done():
            shown = {"is": "done", "result": outcome.lease.result}
        case jobs.Changed():
            done = {"release_job": "released", "offer_job": "offered"}.get(call.verb, "renewed")
            shown = {"is": done, "expires_at": outcome.lease.expires_at}
            shown |= {"code": call.args["code"]} if call.verb == "offer_job" else {}
        case claiming.Claimed():
            (granted,) = outcome.taken
            task = granted.task
            shown = {"is": "granted", "task": task.id, "attempt": task.attempt, **_lease(task)}
            shown |= _ids(granted.lease_id)
        case claiming.Empty():
            shown = {"is": "empty"}
        case sessions.BegunSession():
            shown = _begun(outcome)
        case sessions.SessionState():
            done = "ended" if call.verb == "end_session" else "renewed"
            shown = {"is": done, "expires_at": outcome.session.expires_at}
        case _:
            task = outcome.task
            shown = {"is": DONE[call.verb], "state": task.state, "expires_at": task.expires_at}
    return shown | {"now": outcome.now}


def _ids(lease_id: str) -> dict[str, Any]:
    return {"lease_id": lease_id, "proof": proof_of(lease_id)}


def _lease(row: Lease | Task | Session) -> dict[str, Any]:
    return {"token": row.token, "expires_at": row.expires_at}


def _begun(outcome: sessions.BegunSession) -> dict[str, Any]:
    held = {f"job:{job.id}": job for job in outcome.jobs} | {f"task:{task.id}": task for task in outcome.tasks}
    lease_ids = {place: held_lease_id(outcome.lease_id, row) for place, row in held.items()}
    holds = {place: {"proof": proof_of(lease_ids[place]), "token": row.token} for place, row in held.items()}
    more = {"lease_ids": lease_ids, "secret": outcome.secret, "holds": holds}
    return {
        "is": "opened",
        **_ids(outcome.lease_id),
        **_lease(outcome.session),
        **more,
        "generation": outcome.session.generation,
    }


def _refusal(call: Call, error: BaseException) -> dict[str, Any] | None:
    if isinstance(error, Trouble):
        return None if error.applied == "unknown" else {"is": "unavailable"}
    if isinstance(error, SessionTaken):
        return {"is": "taken"}
    if isinstance(error, OfferRefused):
        return {"is": "offer_refused"}
    if isinstance(error, SessionExpired | SessionMissing):
        return {"is": "session_over"}
    if not isinstance(error, Conflict):
        raise error
    held_by = error.facts.get("held_by") if isinstance(error, LeaseLost) else None
    return {"is": "lost", "held_by": held_by}


def read(call: Call, reader: Reader) -> dict[str, Any]:
    """The answer to a read."""
    # PostgreSQL reads the time before the rows, and the process may be suspended in between.
    return _shown(call, reader) | ({} if isinstance(reader, PostgresReader) else {"now": reader.now})


def _shown(call: Call, reader: Reader) -> dict[str, Any]:
    args = call.args
    if call.verb == "read_task":
        task = reader.row(Task, ACCOUNT, args["task"])
        if task is None:
            return {"is": "absent"}
        return {"is": task.state, "attempt": task.attempt, "result": task.result}
    if call.verb == "read_job":
        lease = read_one_effective(reader, Lease, ACCOUNT, args["job"])
        if lease is not None and leases.is_done(lease, reader.now):
            return {"is": "done", "result": lease.result}
        if lease is None or lease.expires_at is None or lease.expires_at <= reader.now:
            return {"is": "free"}
        return {"is": "claimed", "owner": lease.owner, "expires_at": lease.expires_at}
    with reader.snapshot():
        session = reader.row(Session, ACCOUNT, args["session"])
        jobs_of_group = {job: reader.row(Lease, ACCOUNT, job) for job in args["jobs"]}
    shown = {job: None if row is None else row.proof for job, row in jobs_of_group.items()}
    live = session is not None and session.ended_at is None
    generation = 0 if session is None else session.generation
    return {"is": "live" if live else "over", "generation": generation, "jobs": shown}
