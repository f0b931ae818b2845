"""Verbs `status`, `watch` and `election create` of OctoStore's command line: they hold nothing."""

from __future__ import annotations

import json
import time
from typing import Any

from holdfast.client.errors import HoldfastError
from holdfast.client.event_stream import StreamState
from holdfast.client.retry import AnswerLost, NotSent
from holdfast.transport.cli.credentials import BadAddress
from holdfast.transport.cli.display.answers import print_fields
from holdfast.transport.cli.octostore import failures
from holdfast.transport.cli.octostore.reports import Reports
from holdfast.transport.cli.octostore.requests import Requester, check_encryption
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation

USAGE, FAILED = 64, 70
MAX_FRAME_BYTES = 65_536
NO_LIMIT = float("inf")
_VOLATILE = ("retry_after_ms", "agent_contract")
"""Fields that change although nothing has happened."""


def run(invocation: Invocation) -> int:
    """Print the status once; `watch` prints every change until it is interrupted."""
    arguments = invocation.arguments
    kind, action = invocation.verb.name.split()
    try:
        requester = Requester(arguments, with_token=kind == "lock")
        if kind == "lock":
            check_encryption(requester.server, allow_http=bool(arguments["allow_insecure_http"]))
    except BadAddress as error:
        print_message(f"holdfast: {error}")
        return USAGE
    name = arguments.get("name", "")
    reports = Reports(kind, name, requester.server, as_json=bool(arguments["json"]))
    try:
        if action == "watch":
            _watch(requester, kind, name, reports)
        document = requester.call("create_election") if action == "create" else _read_status(requester, kind, name)
    except HoldfastError as error:
        print_message(f"holdfast: {escape(error.message)} ({failures.reason_of(error)})")
        return FAILED
    if arguments["json"]:
        print(json.dumps(document, sort_keys=kind == "lock"))
    else:
        print_fields(document)
    return 0


def _read_status(requester: Requester, kind: str, name: str) -> dict[str, Any]:
    if kind == "lock":
        return requester.call("get_lock_status", name=name)
    return requester.call("get_election_status", id=name)


def _watch(requester: Requester, kind: str, name: str, reports: Reports) -> None:
    """Report the status, and again whenever it changes. A frame of the stream only says when to read it."""
    field = "name" if kind == "lock" else "id"
    stream = StreamState(f"watch_{kind}", {field: name}, deadline=NO_LIMIT, max_frame_bytes=MAX_FRAME_BYTES)
    seen: dict[str, Any] | None = None
    attempts = 0
    while True:
        try:
            seen = _report_change(_read_status(requester, kind, name), seen, reports)
            for _ in requester.stream(stream):
                attempts = 0
                seen = _report_change(_read_status(requester, kind, name), seen, reports)
        except (NotSent, AnswerLost) as problem:
            time.sleep(stream.reconnect_pause(problem))
        except HoldfastError as error:
            if not failures.is_transient(error):
                raise
            attempts += 1
            time.sleep(failures.pause(error.retry_after, attempts))


def _report_change(document: dict[str, Any], seen: dict[str, Any] | None, reports: Reports) -> dict[str, Any]:
    """Report the status if it differs from the one seen before; the status to compare with next time."""
    status = {field: value for field, value in document.items() if field not in _VOLATILE}
    if status != seen:
        reports.snapshot(document)
    return status
