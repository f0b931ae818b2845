"""`holdfast events`: the log as it is, or as it grows."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import to_builtins

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.client.event_stream import Event
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.output import WIDE, document, for_people, is_document, say, table, text_of
from holdfast.transport.cli.verbs.verb import Verb
from holdfast.transport.times import rfc3339

LAST = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Show a page, or go on for ever."""
    output, follow = arguments.pop("output"), arguments.pop("follow")
    client = client_for(arguments)
    if follow:
        after = end_of_log(client) if arguments["after"] is None else arguments["after"]
        for event in client.follow(after, arguments["subject"], arguments["kind"]):
            show_event(event, verb, output)
        return exit_status.OK
    if arguments["after"] is None:
        answer = _last(client, verb, arguments, arguments["limit"] or LAST)
    else:
        answer = client.call(verb.operation, **arguments)
    show_events(answer, verb, output)
    if answer["hasMore"]:
        say(f"there are more: --after {answer['nextCursor']}")
    return exit_status.OK


def _last(client: Client, verb: Verb, arguments: dict[str, Any], count: int) -> dict[str, Any]:
    """The last so many; fewer where the log begins later, or goes on from a restore."""
    arguments["after"] = max(end_of_log(client) - count, 0)
    try:
        return client.call(verb.operation, **arguments)
    except HoldfastError as error:
        if error.code != "cursor_too_old":
            raise
        arguments["after"] = int(error.document["oldest"]) - 1
        return client.call(verb.operation, **arguments)


def has_events(answer: dict[str, Any]) -> bool:
    return bool(answer["events"])


def show_events(answer: dict[str, Any], verb: Verb, output: str) -> None:
    """One a line, and at once: somebody may be reading along."""
    if is_document(output):
        for event in answer["events"]:
            document(event, output)
    elif answer["events"]:
        table(answer["events"], verb.columns, wide=output == WIDE)
    sys.stdout.flush()


def show_event(event: Event, verb: Verb, output: str) -> None:
    """The same for one that has just happened; columns cannot be made to fit what is still to come."""
    told = to_builtins(event) | {"at": rfc3339((event.at - EPOCH) // timedelta(microseconds=1))}
    if is_document(output):
        document(told, output)
    else:
        cells = (text_of(told[column]) for column in verb.columns)
        print(("  " if for_people() else "\t").join(cells), flush=True)


def end_of_log(client: Client) -> int:
    """The newest event's number: asked for a request that nobody made, the server answers where the log ends."""
    return int(client.call("list_events", request_id="-", limit=1)["nextCursor"])
