"""An agent that does, word for word, what the first recommended action of each answer says.

It sends what the tables of operations require, with ids and lease ids from the answers it got. A walk ends well where
the advice is to wait, to stop, to go on, to correct the request, to ask a person, or to renew what the agent holds.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from holdfast.operations.operation import OCTOSTORE, SYSTEM, Operation
from holdfast.operations.table import OPERATIONS_BY_NAME
from holdfast.transport.advice import orchestrion
from holdfast.transport.advice.wording import Document, advise, request_of
from holdfast.transport.cli.advice import CommandWording
from holdfast.transport.cli.table import VERBS, find_verb
from holdfast.transport.mcp.arguments import choose_call
from holdfast.transport.mcp.listed_tools import ListedTools
from holdfast.transport.mcp.operator_tools import DEFAULT, TOOL_SETS
from tests.compat.octostore.wire import Answer, Caller
from tests.http.job_client import fresh

STEPS = 12
ENDS = {
    "retry_after_wait": "waits",
    "stop_work": "stops",
    "continue_work": "goes on with its own work",
    "ask_operator": "asks a person",
    "fix_request": "corrects its request",
    "authenticate": "sends a key",
}
"""What an agent does that is no request of its own, or one for later."""
FIXED, WORKS, ANSWERED = "as Orchestrion V1 fixes it", "holds it, and renews it while it works", "has what it asked for"
RENEWALS = {
    *("heartbeat_job", "heartbeat_reservation", "heartbeat_session", "heartbeat_leases", "heartbeat"),
    *("renew_lock", "renew_leadership", "keepalive_session"),
}
_E2 = {
    "pending": {"claim_task"},
    "claimed": {"complete_task", "check_task_status"},
    "completed": {"create_task", "download_artifact"},
    "dead_letter": {"requeue_task"},
    "cancelled": {"create_task"},
}
"""The first action for each state of a task on Orchestrion's routes."""
_TAKES = {
    *("create_task", "claim_task", "claim_task_by_id", "requeue_task", "batch_tasks"),
    *("claim_job", "claim_any_job", "reserve_files", "extend_reservation", "claim_reservation"),
    *("acquire_lock", "campaign", "create_election", "begin_session", "open_session"),
    *("register", "register_user", "create_key", "checkout", "verify_payment"),
    *("create_webhook", "create_lock_webhook", "test_webhook", "replay_deliveries"),
}
"""Operations that create, take, buy or send something."""
_FOLLOWS = {
    "index": {"register"},
    "get_job_owner": {"claim_job"},
    "get_lock_status": {"acquire_lock"},
    "get_election_status": {"campaign"},
    "create_election": {"campaign"},
    "checkout": {"verify_payment"},
    "plan": {"checkout", "verify_payment"},
    "session": {"begin_session"},
    "lock_session": {"open_session"},
}
"""What a caller asked for with an operation, beside the operation itself; who has no key asks for one."""
_SESSION_CODES = {"session_not_found", "session_expired", "not_found"}
_PLAN_CODES = {"quota_exceeded", "plan_expired", "payment_failed"}
_SAMPLES: dict[str, Any] = {
    "owner": "walker", "worker_id": "walker", "candidate_id": "walker", "type": "work", "payload": {},
    "reason": "asked", "planId": "pro", "purchaseId": "pur_nobody", "space": "acme/walk", "paths": ["src/walk"],
    "seconds": 600,
}  # fmt: skip


class BadAdvice(AssertionError):
    """A loop, a dead end, a missing tool or route, another family's route, or harm."""


class Way(Protocol):
    """One transport: its rendering of an answer, and the request that its rendering of an action means."""

    name: str

    def show(self, document: Document, operation: str, subject: str) -> Document: ...

    def parse(self, step: Document) -> tuple[Operation, dict[str, str]] | None: ...

    def has(self, operation: str) -> bool: ...


class Http:
    name = "HTTP"

    def show(self, document: Document, operation: str, subject: str) -> Document:
        return document

    def parse(self, step: Document) -> tuple[Operation, dict[str, str]] | None:
        if "endpoint" not in step:
            return None
        found = request_of(step)
        if found is None:
            raise BadAdvice(f"no route: {step}")
        return found

    def has(self, operation: str) -> bool:
        return True


class Mcp:
    name = "MCP"

    def __init__(self) -> None:
        self._listed = ListedTools(TOOL_SETS[DEFAULT])
        self._tools = self._listed.tools.by_name

    def show(self, document: Document, operation: str, subject: str) -> Document:
        return advise(document, self._listed.wording, operation, subject)

    def parse(self, step: Document) -> tuple[Operation, dict[str, str]] | None:
        assert not step.keys() & {"method", "endpoint", "command"}, step
        if "tool" not in step:
            return None
        if step["tool"] not in self._tools:
            raise BadAdvice(f"no such tool: {step}")
        schema = self._listed.input_schema(step["tool"]) or {}
        unknown = {*step["arguments"], *step.get("needs", ())} - schema["properties"].keys()
        if unknown:
            raise BadAdvice(f"the tool {step['tool']} has no {unknown}")
        tool, fields = self._tools[step["tool"]], self._listed._fields[step["tool"]]
        given = dict.fromkeys(step.get("needs", ()), "") | step["arguments"]
        call, sent = choose_call(tool, fields, given)
        wires = {field.argument: field.wire for field in fields[call.operation]}
        return call.target, {wires[name]: str(value) for name, value in sent.items() if value != ""}

    def has(self, operation: str) -> bool:
        return self._listed.tools.find(operation) is not None


class CommandLine:
    name = "command line"

    def __init__(self) -> None:
        self._wording = CommandWording()

    def show(self, document: Document, operation: str, subject: str) -> Document:
        return advise(document, self._wording, operation, subject)

    def parse(self, step: Document) -> tuple[Operation, dict[str, str]] | None:
        assert not step.keys() & {"method", "endpoint", "tool"}, step
        if "command" not in step:
            return None
        program, *words = shlex.split(step["command"])
        verb, rest = find_verb(words)
        if program != "holdfast" or verb is None:
            raise BadAdvice(f"no such command: {step}")
        flags = {name: argument for argument in verb.arguments for name in argument.flags}
        positional = [argument for argument in verb.arguments if argument.is_positional]
        values: dict[str, str] = {}
        while rest:
            word = rest.pop(0)
            if word.startswith("--"):
                values[flags[word].field] = rest.pop(0)
            else:
                values[positional.pop(0).field] = word
        unknown = {argument.flags[0] for argument in verb.arguments if argument.is_positional}
        known = {field: value for field, value in values.items() if value not in unknown}
        return OPERATIONS_BY_NAME[verb.operation], known

    def has(self, operation: str) -> bool:
        return any(verb.operation == operation for verb in VERBS.values())


WAYS: tuple[Way, ...] = (Http(), Mcp(), CommandLine())


class Walker:
    """One caller, with the lease ids that it knows."""

    def __init__(self, caller: Caller, tools: Mapping[str, Any], way: Way) -> None:
        self._caller = caller
        self._tools = tools
        self.way = way
        self.proofs: dict[str, str] = {}

    def walk(self, document: Any, operation: Operation, subject: str = "") -> tuple[str, str]:
        """Follow the advice of an answer to an operation: (its first action, how the walk ended)."""
        asked, seen, first = self._asked_for(document, operation), set[tuple[str, ...]](), ""
        self._remember(document, subject)
        for _ in range(STEPS):
            if not isinstance(document, dict) or "agent_contract" not in document:
                return first or "none", ANSWERED
            shown = self.way.show(document, operation.name, subject)
            step = _first(shown)
            first = first or step["action"]
            if self.way.name == Http.name and is_fixed(shown, operation, step):
                return first, FIXED
            end = _end(step)
            if end is not None:
                return first, end
            request = self.way.parse(step)
            if request is None:
                raise BadAdvice(f"a dead end: {step}")
            operation, subject = self._check(operation, request, step, asked)
            place = (operation.name, subject, str(sorted(request[1].items())))
            if place in seen and operation.name in RENEWALS:
                return first, WORKS
            if place in seen:
                raise BadAdvice(f"a loop: {step} again")
            seen.add(place)
            document = self.send(operation, request[1])
        raise BadAdvice(f"{STEPS} steps without an end, the last was {step}")

    def send(self, operation: Operation, values: Mapping[str, str]) -> Any:
        """Send a request with what its schema requires; its JSON, or None."""
        path = re.sub(r"{(\w+)(\.\.\.)?}", lambda found: values[found[1]], operation.path)
        in_path = re.findall(r"{(\w+)(?:\.\.\.)?}", operation.path)
        rest = {name: value for name, value in values.items() if name not in in_path}
        if operation.method == "GET":
            query = "&".join(f"{name}={value}" for name, value in rest.items() if name != "wait_seconds")
            answer = self._caller.get(f"{path}?{query}" if query else path)
        else:
            answer = self._caller.send_json(operation.method, path, self._body(operation, rest, values))
        document = json_of(answer)
        self._remember(document, next((values[name] for name in in_path), ""))
        return document

    def _body(self, operation: Operation, given: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
        schema = self._tools[operation.name]["inputSchema"]
        body: dict[str, Any] = dict(given)
        proof = next((self.proofs[value] for value in values.values() if value in self.proofs), None)
        for name in ("lease_id", "leader_token"):
            if name in schema["properties"] and proof is not None:
                body.setdefault(name, proof)
        for name in schema["required"]:
            if name not in values:
                body.setdefault(name, self._sample(name))
        return body

    def _sample(self, name: str) -> Any:
        if name == "leases":
            return [{"job_id": job, "lease_id": proof} for job, proof in self.proofs.items()][:1]
        return _SAMPLES.get(name) or fresh("walk")

    def _remember(self, document: Any, subject: str) -> None:
        if isinstance(document, dict):
            proof = document.get("lease_id") or document.get("leaseId") or document.get("leader_token")
            keys = (subject, *(document.get(name) for name in ("id", "job_id", "reservation_id", "session_id")))
            self.proofs |= {key: proof for key in keys if key and proof}

    def _check(
        self, before: Operation, request: tuple[Operation, dict[str, str]], step: Document, asked: set[str]
    ) -> tuple[Operation, str]:
        """The operation and subject of an advised request, which exists, is known, of the family, and harmless."""
        operation, values = request
        in_path = re.findall(r"{(\w+)(?:\.\.\.)?}", operation.path)
        if not all(name in values for name in in_path):
            raise BadAdvice(f"a dead end, nobody knows the id: {step}")
        if SYSTEM not in {before.family, operation.family} and _is_octostore(before) != _is_octostore(operation):
            raise BadAdvice(f"{before.name} leads to another family: {step}")
        if operation.name in _TAKES and operation.name not in asked:
            raise BadAdvice(f"harm, nobody asked for it: {step}")
        return operation, next((values[name] for name in in_path), "")

    def _asked_for(self, document: Any, operation: Operation) -> set[str]:
        code = (document.get("code") or document.get("error")) if isinstance(document, dict) else None
        asked = {operation.name, *_FOLLOWS.get(operation.name, ())}
        if code in _SESSION_CODES:
            asked |= _FOLLOWS["lock_session" if _is_octostore(operation) else "session"]
        if code in _PLAN_CODES or operation.path.startswith("/v1/billing"):
            asked |= _FOLLOWS["plan"]
        return asked


def is_fixed(document: Document, operation: Operation, step: Document) -> bool:
    """Whether Orchestrion's sheet fixes this answer on its own route: a refusal, a state, the list, a registration."""
    if operation.name not in orchestrion.ROUTES:
        return False
    code = document.get("error")
    if code is not None:
        return orchestrion.for_error(code, operation=operation.name) is not None
    if operation.name in {"register", "list_tasks"}:
        return step["action"] in {"create_task", "claim_task"}
    return step["action"] in _E2.get(document.get("status", ""), set())


def _first(document: Document) -> Document:
    steps = document["agent_contract"]["next_actions"]
    if not steps:
        raise BadAdvice(f"no action: {document}")
    found: Document = next((step for step in steps if step["recommended"]), steps[0])
    if not found["recommended"] and document.get("error") != "invalid_request":
        raise BadAdvice(f"nothing is recommended: {document}")
    return found


def _end(step: Document) -> str | None:
    """How a walk ends here, if it does. What is no request must say in words what to do."""
    end = ENDS.get(step["action"])
    if end is not None and step["action"] not in {"retry_after_wait", "authenticate"} and not step.get("description"):
        raise BadAdvice(f"a dead end without words: {step}")
    return end


def _is_octostore(operation: Operation) -> bool:
    return operation.family == OCTOSTORE


def json_of(answer: Answer) -> Any:
    """The JSON of an answer, or None."""
    try:
        return msgspec.json.decode(answer.raw)
    except msgspec.DecodeError:
        return None
