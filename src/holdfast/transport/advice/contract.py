"""Builders of `agent_contract`, the advice in every answer about what to do next.

An action names an operation; its method and path come from the operation table. Action codes do not change between
versions. The first recommended action is the one to take. Advice about one kind of resource is in the module of that
name; advice that fits several is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.core.row import SECOND, Instant
from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS

Contract = dict[str, Any]
Advice = Contract | msgspec.Raw
"""An `agent_contract`, as a document or as its JSON."""
Action = dict[str, Any]
Endpoint = tuple[str, str]
"""Method and path."""

VERSION = "1"
WITHOUT_KEY = (
    "On the server's machine `holdfast`, `holdfast mcp` and the Python client find this machine's key. Elsewhere, ask"
    " the operator for a key. Do not register: a new account does not see the other agents' work."
)
"""What a caller without a key should do."""

_SUBJECT = "subject-of-prepared-advice"
"""Stands for the subject in prepared advice."""
_NEEDS_NO_ESCAPES = re.compile(r"[A-Za-z0-9._:@/-]+").fullmatch
"""Subjects that are the same in JSON and in a path."""


def contract(*actions: Action, retryable: bool = False, **more: Any) -> Contract:
    """Wrap actions, best first."""
    return {"version": VERSION, "retryable": retryable, "next_actions": list(actions), **more}


def action(
    code: str,
    subject: str | None = None,
    *,
    operation: str | None = None,
    query: str = "",
    endpoint: Endpoint | None = None,
    best: bool = False,
    wait: int | None = None,
    why: str = "",
) -> Action:
    """Build one action.

    `operation` is the request to send; an action whose code is an operation's name means that operation. `subject` is
    the id or name in its path; without one the path keeps its placeholder. `endpoint` is a method and path that
    replaces the operation's.
    """
    step: Action = {"action": code, "available": True, "recommended": best}
    if why:
        step["description"] = why
    if endpoint is None:
        route = _ROUTES.get(operation or code)
        endpoint = None if route is None else _fill(route, subject)
    if endpoint is not None:
        step["method"] = endpoint[0]
        step["endpoint"] = f"{endpoint[1]}?{query}" if query else endpoint[1]
    if wait is not None:
        step["retry_after_seconds"] = wait
    return step


def prepared(build: Callable[..., Contract], subject: str, *details: Hashable) -> msgspec.Raw:
    """The JSON of `build(subject, *details)`: answers to claims are rendered often.

    It is prepared once for all subjects that need no escapes, neither in JSON nor in a path, as most ids do not.
    """
    if not _NEEDS_NO_ESCAPES(subject):
        return msgspec.Raw(msgspec.json.encode(build(subject, *details)))
    return msgspec.Raw(subject.encode().join(_prepare(build, *details)))


@lru_cache(maxsize=4096, typed=True)
def _prepare(build: Callable[..., Contract], *details: Hashable) -> list[bytes]:
    """What comes before, between and after the subject."""
    return msgspec.json.encode(build(_SUBJECT, *details)).split(_SUBJECT.encode())


def _split(operation: Operation) -> tuple[str, str, str, str]:
    """(method, path before its parameter, the parameter, path after it)."""
    path = operation.path.replace("...}", "}")
    before, brace, rest = path.partition("{")
    name, _, after = rest.partition("}")
    return operation.method, before, f"{{{name}}}" if brace else "", after


_ROUTES = {operation.name: _split(operation) for operation in OPERATIONS}
_LOCK_NAME = "{name}"


def _fill(route: tuple[str, str, str, str], subject: str | None) -> Endpoint:
    method, before, parameter, after = route
    # A lock's name is one segment; job ids keep their slashes, other ids have none.
    kept = "" if parameter == _LOCK_NAME else "/:@"
    return method, before + (parameter if subject is None else quote(subject, safe=kept)) + after


def seconds_left(until: Instant | None, now: Instant) -> int:
    """Whole seconds until an instant, at least zero."""
    return max((until or now) - now, 0) // SECOND


def seconds_to_wait(until: Instant | None, now: Instant) -> int:
    """Whole seconds after which that instant is past: at least one."""
    return max(-(-((until or now) - now) // SECOND), 1)


# -- answers -----------------------------------------------------------------------------------------------------


def new_caller(*, can_register: bool) -> Contract:
    """Advice for a caller that knows only the server's address."""
    registering = action("register", best=True, why="Get an account of your own and its first key.")
    return contract(
        registering if can_register else _send_key(can_register=False),
        action("agent_json", why="Or first read what this server offers."),
    )


def known_caller() -> Contract:
    """Advice for a caller that has a key and asks what the server can do."""
    return continue_work("These are all operations.", action("list_mine", why="See what your key holds."))


def continue_work(why: str, *others: Action) -> Contract:
    """The request is complete, and nothing follows from it; `others` are possible, but nobody asked for them."""
    return contract(action("continue_work", best=True, why=why), *others)


def work_over(why: str, *others: Action) -> Contract:
    """Nothing is left to do on this piece of work."""
    return contract(action("stop_work", best=True, why=why), *others)


# -- refusals ----------------------------------------------------------------------------------------------------


def retry_after(seconds: int) -> Contract:
    """The same request may succeed later."""
    return contract(action("retry_after_wait", best=True, wait=seconds), retryable=True)


def check_state(
    code: str,
    subject: str | None = None,
    *,
    operation: str | None = None,
    query: str = "",
    endpoint: Endpoint | None = None,
) -> Contract:
    """Read the present state before sending anything again: the request may have taken effect."""
    return contract(action(code, subject, operation=operation, query=query, endpoint=endpoint, best=True))


def stop_work(code: str, subject: str | None = None, *, endpoint: Endpoint | None = None) -> Contract:
    """The caller's lease has ended; `code` is what to do after stopping."""
    why = "You do not hold it. Stop, and do not publish unfinished work."
    return contract(action("stop_work", best=True, why=why), action(code, subject, endpoint=endpoint))


def authenticate(*, retryable: bool, can_register: bool = False) -> Contract:
    """A credential is missing or wrong. Where accounts are open to anyone, the action is to register one."""
    return contract(_send_key(can_register=can_register), retryable=retryable)


def _send_key(*, can_register: bool) -> Action:
    if can_register:
        why = "Send `Authorization: Bearer <key>`; registering creates a key, for an account of its own."
        return action("authenticate", operation="register", best=True, why=why)
    return action("authenticate", best=True, why=f"Send `Authorization: Bearer <key>`. {WITHOUT_KEY}")


def not_installed() -> Contract:
    """This server was installed without MCP; only its operator can change that."""
    return contract(action("tool", best=True, why="Use these HTTP operations, or ask the operator to install MCP."))


def fix_request(why: str = "") -> Contract:
    """The request is wrong and would be refused again."""
    return contract(action("fix_request", best=True, why=why))


def ask_operator(why: str) -> Contract:
    """Nothing that the caller can send helps: a person must do it."""
    return contract(action("ask_operator", best=True, why=why))
