"""Where walks start: the answer of every operation, of every state, and every refusal that an operation documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from holdfast.core import errors
from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS, OPERATIONS_BY_NAME
from holdfast.transport.http.handlers import render_error
from holdfast.transport.http.octostore.errors import InvalidLockName, InvalidTtl
from holdfast.transport.http.request import HttpRefusal, Request
from holdfast.transport.http.routing import Router
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.schemas.refusals import _common
from tests.advice.walker import json_of
from tests.compat.octostore.wire import NOTHING, Answer, Caller
from tests.compat.orchestrion import states
from tests.compat.orchestrion.account import Account
from tests.http.account_resources import REQUESTS, Absent, Resources
from tests.http.job_client import fresh, job_path
from tests.http.session_client import begin

ROUTER = Router()
FIRST_ERROR_STATUS = 400
PUBLIC: dict[str, Callable[[], tuple[str, Any]]] = {
    "index": lambda: ("/", NOTHING),
    "status": lambda: ("/status", NOTHING),
    "register": lambda: ("/v1/keys/register", NOTHING),
    "list_plans": lambda: ("/v1/billing/plans", NOTHING),
    "create_election": lambda: ("/elections", NOTHING),
    "get_election_status": lambda: (f"/elections/{'e' * 32}", NOTHING),
    "campaign": lambda: (f"/elections/{'f' * 32}/campaign", {"candidate_id": "walker"}),
}
"""Requests of operations without a key."""
FACTS: dict[type[Exception], dict[str, Any]] = {
    errors.CursorTooOld: {"oldest": 1},
    errors.CursorAhead: {"last": 0},
    errors.NotYetClaimable: {"retry_after": 30},
    errors.SessionBusy: {"in_flight": "tsk_other"},
    errors.InvalidTransition: {"state": "completed"},
}


ANYWHERE: tuple[type[Exception] | int, ...] = (RuntimeError, errors.DamagedRow, 405, 501)
"""Refusals that operations do not document one by one."""


class Start(NamedTuple):
    """The answer to one request, from which a walk starts."""

    name: str
    """What the page of the table says about it."""
    operation: Operation
    subject: str
    document: Any
    proofs: dict[str, str]


def of_operations(new_account: Callable[[], Account]) -> Iterator[tuple[str, Callable[[], Start]]]:
    """Each operation with a key, about things that exist; and with ids that do not exist."""
    for name, ask in REQUESTS.items():
        if name == "watch_lock":  # a stream, which has no advice
            continue
        yield name, lambda name=name, ask=ask: _start(name, name, _existing(new_account(), ask))
        if name not in {"delete_account", "rotate_own_key", "rotate_token"}:
            yield name, lambda name=name, ask=ask: _start(f"{name}, unknown id", name, _absent(new_account(), ask))


def of_public_operations(anyone: Caller) -> Iterator[tuple[str, Callable[[], Start]]]:
    """Each operation that needs no key."""
    for name, ask in PUBLIC.items():
        yield name, lambda name=name, ask=ask: _start(name, name, (anyone, *ask(), {}))


def of_states(new_account: Callable[[], Account]) -> Iterator[tuple[str, Callable[[], Start]]]:
    """Each state of a task, job, reservation and session, and each list when it is empty."""
    for state, make in {**states.STATES, **CANCELS}.items():
        path = "/v1/tasks/{}"
        yield (
            "check_task_status",
            lambda state=state, make=make, path=path: _read(
                f"task: {state}", "check_task_status", account := new_account(), path.format(make(account)["id"])
            ),
        )
    for name, (operation, ask) in READS.items():
        yield (
            operation,
            lambda name=name, operation=operation, ask=ask: _read(
                name, operation, account := new_account(), ask(account)
            ),
        )


def of_refusals(it: Resources) -> Iterator[Start]:
    """Each refusal that an operation documents, rendered as its route renders it."""
    for operation in OPERATIONS:
        schema = OPERATION_SCHEMAS.get(operation.name)
        if schema is None:
            continue
        path = _path_of(operation, it)
        for kind in dict.fromkeys((*schema.refusals, *_common(operation, schema), *ANYWHERE)):
            if kind not in {InvalidTtl, InvalidLockName}:
                yield refusal(operation, path, kind)


def unknown_path(path: str) -> Start:
    """The refusal of a path that no operation has, asked like a read of a list."""
    request = _request("GET", path)
    document = _body(request, HttpRefusal(404, "no operation has this path"))
    family = "list_mine" if path.startswith("/v1/") else "list_locks"
    return Start(f"`{document['error']}`", OPERATIONS_BY_NAME[family], "", document, {})


# -- answers -----------------------------------------------------------------------------------------------------


Asked = tuple[Caller, str, Any, dict[str, str]]
"""Who sends which path and body, and the proofs that the caller has."""


def _existing(account: Account, ask: Callable[[Any], tuple[str, Any]]) -> Asked:
    it = Resources(account)
    path, body = ask(it)
    return account, path, body, {thing.id: thing.proof for thing in it.made if thing.proof}


def _absent(account: Account, ask: Callable[[Any], tuple[str, Any]]) -> Asked:
    path, body = ask(Absent(Resources(account)))
    return account, path, body, {}


def _start(name: str, operation: str, asked: Asked) -> Start:
    caller, path, body, proofs = asked
    row = OPERATIONS_BY_NAME[operation]
    answer: Answer = caller.send(row.method, path) if body is NOTHING else caller.send_json(row.method, path, body)
    document = json_of(answer)
    if answer.status >= FIRST_ERROR_STATUS and isinstance(document, dict):
        name = f"`{document.get('code') or document.get('error')}`"
    return Start(name, row, _subject(row, path), document, proofs)


def _read(name: str, operation: str, account: Account, path: str) -> Start:
    return _start(name, operation, (account, path, NOTHING, {}))


def _forced(account: Account) -> dict[str, Any]:
    task = states.held(account)
    account.do("cancel", task["id"], mode="force")
    return task


def _asked_to_stop(account: Account) -> dict[str, Any]:
    task = states.held(account)
    account.do("cancel", task["id"], mode="request")
    return task


def _stopped(account: Account) -> dict[str, Any]:
    task = _asked_to_stop(account)
    account.fail(task["id"])
    return task


CANCELS = {
    "cancelled by force": _forced,
    "asked to stop": _asked_to_stop,
    "stopped as asked": _stopped,
}


def _done_job(account: Account) -> str:
    name = fresh()
    lease = account.post(job_path(name, "/claim"), {"owner": "me"}).json
    account.post(job_path(name, "/release"), {"lease_id": lease["lease_id"], "outcome": "done"})
    return job_path(name)


def _ended_session(account: Account) -> str:
    session = begin(account)
    path = f"/v1/sessions/{session['session_id']}"
    account.send_json("DELETE", path, {"lease_id": session["lease_id"]})
    return path


def _ended_reservation(account: Account) -> str:
    made = account.post("/v1/reservations", {"space": "acme/x", "owner": "me", "paths": ["a"]}).json
    path = f"/v1/reservations/{made['reservation_id']}"
    account.post(f"{path}/release", {"lease_id": made["lease_id"]})
    return path


READS: dict[str, tuple[str, Callable[[Account], str]]] = {
    "job: free": ("get_job_owner", lambda _: job_path(fresh())),
    "job: done": ("get_job_owner", _done_job),
    "session: ended": ("read_session", _ended_session),
    "reservation: ended": ("read_reservation", _ended_reservation),
    "lock: free": ("get_lock_status", lambda _: f"/locks/{fresh('lock')}"),
    "no jobs": ("list_claimed_jobs", lambda _: "/v1/jobs"),
    "no tasks": ("list_tasks", lambda _: "/v1/tasks"),
    "no reservations": ("list_reservations", lambda _: "/v1/reservations"),
    "no sessions": ("list_sessions", lambda _: "/v1/sessions"),
    "no webhooks": ("list_webhooks", lambda _: "/v1/webhooks"),
    "nothing held": ("list_mine", lambda _: "/v1/mine"),
}


# -- refusals ----------------------------------------------------------------------------------------------------


def refusal(operation: Operation, path: str, kind: type[Exception] | int) -> Start:
    """A refusal as its route renders it."""
    request = _request(operation.method, path)
    request.route(operation, _subject(operation, path))
    document = _body(request, _error(kind))
    return Start(f"`{document['error']}`", operation, request.parameter, document, {})


def _error(kind: type[Exception] | int) -> Exception:
    if isinstance(kind, int):
        return HttpRefusal(kind, "the request cannot be read")
    if not issubclass(kind, errors.HoldfastError):
        return RuntimeError("broken")
    if kind is errors.DamagedRow:
        return errors.DamagedRow("tasks")
    return kind("it is refused", **FACTS.get(kind, {}))


def _body(request: Request, error: Exception) -> Any:
    document = json_of(Answer(0, {}, render_error(request, error).body))  # type: ignore[arg-type]
    if "code" in document:  # OctoStore's own form
        document["error"] = document["code"]
    return document


def _request(method: str, path: str) -> Request:
    async def never() -> Any:
        raise AssertionError

    return Request({"headers": [], "path": path, "raw_path": path.encode(), "method": method}, never)


def _path_of(operation: Operation, it: Resources) -> str:
    ask = REQUESTS.get(operation.name)
    return ask(it)[0].partition("?")[0] if ask else operation.path.replace("{id}", "e" * 32)


def _subject(operation: Operation, path: str) -> str:
    return ROUTER.find(operation.method, path.partition("?")[0].encode())[1]
