"""Verbs `events`, `await event` and `task history`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import to_builtins

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.client.event_stream import Event
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.display.event_lines import event_row, is_for_people, print_events, read_key_names
from holdfast.transport.cli.display.styles import coloured
from holdfast.transport.cli.display.table import cut, terminal_width
from holdfast.transport.cli.display.times import time_of_day
from holdfast.transport.cli.long_wait import NO_LIMIT, call_until
from holdfast.transport.cli.output import is_document, is_terminal, print_message, text_of
from holdfast.transport.cli.verbs.verb import Invocation
from holdfast.transport.times import rfc3339

DEFAULT_COUNT = 100
_SHORTEST_LINE = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def list_or_follow(invocation: Invocation) -> int:
    """Print one page of the log, or with --follow every new event."""
    arguments = invocation.arguments
    follow = arguments.pop("follow")
    client = client_for(arguments)
    if follow:
        after = _end_of_log(client) if arguments["after"] is None else arguments["after"]
        _print_followed(client.follow(after, arguments["subject"], arguments["kind"]), client, invocation)
        return exit_status.OK
    if arguments["after"] is None:
        answer = _read_last(client, invocation, arguments["limit"] or DEFAULT_COUNT)
    else:
        answer = client.call(invocation.verb.operation, **arguments)
    _print_events(answer, client, invocation)
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
        _print_events(answer, client, invocation)
        return exit_status.OK
    print_message("holdfast: no event in time")
    return invocation.held_status(exit_status.HELD)


def history(invocation: Invocation) -> int:
    """`task history`: the events of one task."""
    client = client_for(invocation.arguments)
    answer = client.call(invocation.verb.operation, **invocation.arguments)
    if is_for_people(invocation):
        print_events(answer["events"], client, invocation)
    else:
        print_answer(answer, invocation)
    return exit_status.OK


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


def _print_events(answer: dict[str, Any], client: Client, invocation: Invocation) -> None:
    """Print events, flushed at once for a program that reads them from a pipe."""
    print_events(answer["events"], client, invocation)
    sys.stdout.flush()


def _print_followed(events: Iterator[Event], client: Client, invocation: Invocation) -> None:
    """Print events as they happen, in columns of fixed widths: those of later events are not known."""
    for_people = is_for_people(invocation)
    names = read_key_names(client) if for_people else {}
    for event in events:
        document = to_builtins(event) | {"at": rfc3339((event.at - EPOCH) // timedelta(microseconds=1))}
        if for_people:
            print(_followed_line(event_row(document, names), event.at.timestamp()), flush=True)
        elif invocation.fields or is_document(invocation.output):
            print_events([document], client, invocation)
        else:
            cells = (text_of(document[column]) for column in invocation.verb.columns)
            print(("  " if is_terminal() else "\t").join(cells), flush=True)


def _followed_line(row: dict[str, Any], at: float) -> str:
    """One line that fits the terminal, with the time of day: a relative one would soon be wrong."""
    kind = text_of(row["kind"])
    start = f"{time_of_day(at)}  {kind:<15}  "
    rest = "  ".join(text_of(row[name]) for name in ("subject", "who", "changes") if row[name])
    return start.replace(kind, coloured(kind), 1) + cut(rest, max(terminal_width() - len(start), _SHORTEST_LINE))
