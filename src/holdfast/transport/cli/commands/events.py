"""Verbs `events` and `await event`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import to_builtins

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.client.event_stream import Event
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.long_wait import NO_LIMIT, call_until
from holdfast.transport.cli.output import (
    WIDE,
    is_document,
    is_terminal,
    print_document,
    print_message,
    print_table,
    text_of,
)
from holdfast.transport.cli.verbs.verb import Invocation
from holdfast.transport.times import rfc3339

DEFAULT_COUNT = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def list_or_follow(invocation: Invocation) -> int:
    """Print one page of the log, or with --follow every new event."""
    arguments = invocation.arguments
    follow = arguments.pop("follow")
    client = client_for(arguments)
    if follow:
        after = _end_of_log(client) if arguments["after"] is None else arguments["after"]
        for event in client.follow(after, arguments["subject"], arguments["kind"]):
            _print_new_event(event, invocation)
        return exit_status.OK
    if arguments["after"] is None:
        answer = _read_last(client, invocation, arguments["limit"] or DEFAULT_COUNT)
    else:
        answer = client.call(invocation.verb.operation, **arguments)
    _print_events(answer, invocation)
    if answer["hasMore"]:
        print_message(f"there are more: --after {answer['nextCursor']}")
    return exit_status.OK


def await_event(invocation: Invocation) -> int:
    """Wait for an event and print it."""
    arguments = invocation.arguments
    wait = arguments.pop("wait_seconds")
    client = client_for(arguments)
    if arguments["after"] is None:
        arguments["after"] = _end_of_log(client)
    limit = NO_LIMIT if wait is None else wait
    answer = call_until(client, invocation.verb.operation, arguments, limit, _has_events)
    if _has_events(answer):
        _print_events(answer, invocation)
        return exit_status.OK
    print_message("holdfast: no event in time")
    return invocation.held_status(exit_status.HELD)


def _has_events(answer: dict[str, Any]) -> bool:
    return bool(answer["events"])


def _read_last(client: Client, invocation: Invocation, count: int) -> dict[str, Any]:
    """The last events; fewer where retention removed some, or where the log continues after a restore."""
    arguments = invocation.arguments
    arguments["after"] = max(_end_of_log(client) - count, 0)
    try:
        return client.call(invocation.verb.operation, **arguments)
    except HoldfastError as error:
        if error.code != "cursor_too_old":
            raise
        arguments["after"] = int(error.document["oldest"]) - 1
        return client.call(invocation.verb.operation, **arguments)


def _end_of_log(client: Client) -> int:
    """Sequence number of the newest event: the cursor that a search without a match answers."""
    return int(client.call("list_events", request_id="-", limit=1)["nextCursor"])


def _print_events(answer: dict[str, Any], invocation: Invocation) -> None:
    """Print events, flushed at once for a program that reads them from a pipe."""
    if is_document(invocation.output):
        for event in answer["events"]:
            print_document(event, invocation.output)
    elif answer["events"]:
        print_table(answer["events"], invocation.verb.columns, wide=invocation.output == WIDE)
    sys.stdout.flush()


def _print_new_event(event: Event, invocation: Invocation) -> None:
    """Print one followed event, without column widths: they would depend on events still to come."""
    document = to_builtins(event) | {"at": rfc3339((event.at - EPOCH) // timedelta(microseconds=1))}
    if is_document(invocation.output):
        print_document(document, invocation.output)
    else:
        cells = (text_of(document[column]) for column in invocation.verb.columns)
        print(("  " if is_terminal() else "\t").join(cells), flush=True)
