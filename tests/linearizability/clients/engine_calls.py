"""Calls as commands of the engine, and its outcomes as answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.core.errors import (
    Conflict,
    Invalid,
    LeaseLost,
    OfferRefused,
    ReservationMissing,
    SessionExpired,
    SessionMissing,
    SessionTaken,
    Trouble,
)
from holdfast.core.event import Cause
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Request, Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Command, Held
from holdfast.engine.verbs import (
    job_claims,
    job_offers,
    jobs,
    reservation_claims,
    reservation_offers,
    reservations,
    sessions,
)
from holdfast.engine.verbs.tasks import claiming, creating, holding, offers
from holdfast.engine.verbs.tasks.base import TaskOutcome
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
    elif call.verb in {"reserve", "take_reservation"}:
        args["lease_id"] = f"lease of {call.id}"
        args["reservation"] = args["reservation"] or f"reservation of {call.id}"
        if args.get("session") is None:
            args["proof"] = proof_of(args["lease_id"])
    elif call.verb.startswith("offer_"):
        args["code"] = f"code of {call.id}"
        args["code_proof"] = proof_of(args["code"])
    elif call.verb == "open_session":
        args["new_secret"] = f"secret of {call.id}"
        args["fresh_secret"] = proof_of(args["new_secret"])


def command_of(call: Call) -> Command[Any]:
    """The command that asks for it."""
    common: dict[str, Any] = {"account": ACCOUNT, "cause": Cause("worker", call.id)}
    verb, fields = _COMMANDS["take_task" if call.verb == "claim_task" and "code" in call.args else call.verb]
    return verb(**common, **fields(call.args))


def _claim_job(args: dict[str, Any]) -> dict[str, Any]:
    named = {"name": args["job"], "lease_id": args["lease_id"], "holder": args["holder"], "owner": args["owner"]}
    more = {"again": args["again"], "offer": args.get("code")}
    return {"by": BY, "ttl": args["ttl"], **more, **named, **_for_session(args)}


def _claim_task(args: dict[str, Any]) -> dict[str, Any]:
    worker = {"by": BY, "worker": args["owner"], "seed": args["seed"].encode()}
    return {"types": (args["queue"],), "limit": 1, **worker, **_for_session(args)}


def _take_task(args: dict[str, Any]) -> dict[str, Any]:
    return {
        "by": BY, "worker": args["owner"], "seed": args["seed"].encode(), "task_id": args["task"],
        "offer": args["code"], **_for_session(args),
    }  # fmt: skip


def _reserve(args: dict[str, Any]) -> dict[str, Any]:
    request = Request(
        space=args["space"], mode=args["mode"], paths=tuple(args["paths"]), owner=args["owner"], principal=BY.id,
        ttl=args["ttl"], session=args.get("session"),
    )  # fmt: skip
    ids = {"reservation_id": args["reservation"], "lease_id": args["lease_id"]}
    return {"by": BY, "request": request, "session_lease_id": args.get("session_lease_id"), **ids}


def _take_reservation(args: dict[str, Any]) -> dict[str, Any]:
    return {"by": BY, **_reservation(args), "code": args["code"], "owner": args["owner"], "ttl": args["ttl"]} | (
        _for_session(args)
    )


def _reservation(args: dict[str, Any]) -> dict[str, Any]:
    return {"reservation_id": args["reservation"], "lease_id": args["lease_id"]}


def _reservation_paths(args: dict[str, Any]) -> dict[str, Any]:
    return _reservation(args) | {"paths": tuple(args.get("paths", ()))}


def _offer(args: dict[str, Any]) -> dict[str, Any]:
    return {"code": args["code"], "lasts": args["lasts"]}


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
    "offer_job": (job_offers.OfferJob, lambda args: _job(args) | _offer(args)),
    "withdraw_job": (job_offers.WithdrawJobOffer, _job),
    "create_task": (creating.CreateTask, _create_task),
    "claim_task": (claiming.ClaimTasks, _claim_task),
    "heartbeat_task": (holding.HeartbeatTask, _task),
    "complete_task": (holding.CompleteTask, lambda args: {**_task(args), "result": args["result"]}),
    "fail_task": (holding.FailTask, _task),
    "release_task": (holding.ReleaseTask, _task),
    "take_task": (claiming.ClaimTask, _take_task),
    "offer_task": (offers.OfferTask, lambda args: _task(args) | _offer(args)),
    "withdraw_task": (offers.WithdrawTaskOffer, _task),
    "reserve": (reservation_claims.Reserve, _reserve),
    "take_reservation": (reservation_claims.TakeReservation, _take_reservation),
    "heartbeat_reservation": (reservations.HeartbeatReservation, _reservation),
    "release_reservation": (reservations.ReleaseReservation, _reservation_paths),
    "extend_reservation": (
        reservations.ExtendReservation,
        lambda args: _reservation_paths(args) | {"space": args["space"]},
    ),
    "offer_reservation": (reservation_offers.OfferReservation, lambda args: _reservation(args) | _offer(args)),
    "withdraw_reservation": (reservation_offers.WithdrawReservationOffer, _reservation),
    "open_session": (sessions.BeginSession, _open_session),
    "heartbeat_session": (sessions.HeartbeatSession, _session),
    "end_session": (sessions.CloseSession, _session),
}


DONE = {
    "heartbeat": "renewed",
    "complete": "completed",
    "fail": "failed",
    "release": "released",
    "create": "created",
    "extend": "extended",
    "offer": "offered",
    "withdraw": "withdrawn",
    "end": "ended",
}
"""By verb: what its answer says."""


def answer_of(call: Call, outcome: Any) -> dict[str, Any] | None:
    """The answer to it; None if its outcome is unknown."""
    if isinstance(outcome, BaseException):
        return _refusal(call, outcome)
    shown = next(show for kind, show in _ANSWERS.items() if isinstance(outcome, kind))
    return shown(call, outcome) | {"now": outcome.now}


def _granted_task(call: Call, outcome: claiming.Claimed) -> dict[str, Any]:
    (granted,) = outcome.taken
    task = granted.task
    return {"is": "granted", "task": task.id, "attempt": task.attempt, **_lease(task), **_ids(granted.lease_id)}


def _changed(call: Call, row: Lease | Task | Reservation | Session) -> dict[str, Any]:
    shown = {"is": DONE[call.verb.partition("_")[0]], "expires_at": row.expires_at}
    return shown | ({"code": call.args["code"]} if call.verb.startswith("offer_") else {})


def _ids(lease_id: str) -> dict[str, Any]:
    return {"lease_id": lease_id, "proof": proof_of(lease_id)}


def _lease(row: Lease | Task | Reservation | Session) -> dict[str, Any]:
    return {"token": row.token, "expires_at": row.expires_at}


def _begun(call: Call, outcome: sessions.BegunSession) -> dict[str, Any]:
    held: dict[str, Lease | Task | Reservation] = {f"job:{job.id}": job for job in outcome.jobs}
    held |= {f"{row.noun}:{row.id}": row for row in (*outcome.tasks, *outcome.reservations)}
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


_ANSWERS: dict[type, Callable[[Call, Any], dict[str, Any]]] = {
    job_claims.Claimed: lambda _, got: {"is": "granted", **_ids(got.lease_id), **_lease(got.lease)},
    Held: lambda _, got: {"is": "held", "owner": got.lease.owner, "expires_at": got.lease.expires_at},
    job_claims.Done: lambda _, got: {"is": "done", "result": got.lease.result},
    jobs.Changed: lambda call, got: _changed(call, got.lease),
    reservation_claims.Reserved: lambda _, got: {"is": "granted", **_ids(got.lease_id), **_lease(got.row)},
    reservations.FilesHeld: lambda _, got: {"is": "held", "owners": [each.row.owner for each in got.conflicts]},
    reservations.ChangedReservation: lambda call, got: _changed(call, got.row),
    claiming.Claimed: _granted_task,
    claiming.Empty: lambda *_: {"is": "empty"},
    sessions.BegunSession: _begun,
    sessions.SessionState: lambda call, got: _changed(call, got.session),
    TaskOutcome: lambda call, got: _changed(call, got.task) | {"state": got.task.state},
}
"""By the type of an outcome, derived ones first: its answer."""


_REFUSALS: dict[type[BaseException] | tuple[type[BaseException], ...], str] = {
    SessionTaken: "taken",
    OfferRefused: "offer_refused",
    ReservationMissing: "absent",
    (SessionExpired, SessionMissing): "session_over",
}


def _refusal(call: Call, error: BaseException) -> dict[str, Any] | None:
    if isinstance(error, Trouble):
        return None if error.applied == "unknown" else {"is": "unavailable"}
    refusal = next((kind for errors, kind in _REFUSALS.items() if isinstance(error, errors)), None)
    if isinstance(error, Invalid) and call.verb == "release_reservation":
        refusal = "not_reserved"
    if refusal is not None:
        return {"is": refusal}
    if not isinstance(error, Conflict):
        raise error
    held_by = error.facts.get("held_by") if isinstance(error, LeaseLost) else None
    return {"is": "lost", "held_by": held_by}
