"""`holdfast events`: the log as it is, or as it grows."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import to_builtins

from holdfast.client.client import Client
from holdfast.client.following import Event
from holdfast.transport.cli import exits
from holdfast.transport.cli.call import client_for
from holdfast.transport.cli.show import as_json, for_people, say, table, text_of
from holdfast.transport.cli.verb import Verb
from holdfast.transport.times import rfc3339

LAST = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Show a page, or go on for ever."""
    output, follow = arguments.pop("output"), arguments.pop("follow")
    client = client_for(arguments)
    if arguments["after"] is None:
        arguments["after"] = end_of_log(client) - (0 if follow else arguments["limit"] or LAST)
    arguments["after"] = max(arguments["after"], 0)
    if follow:
        for event in client.follow(arguments["after"], arguments["subject"], arguments["kind"]):
            show_event(event, verb, output)
    answer = client.call(verb.operation, **arguments)
    show_events(answer, verb, output)
    if answer["hasMore"]:
        say(f"there are more: --after {answer['nextCursor']}")
    return exits.OK


def has_events(answer: dict[str, Any]) -> bool:
    return bool(answer["events"])


def show_events(answer: dict[str, Any], verb: Verb, output: str) -> None:
    """One a line, and at once: somebody may be reading along."""
    if output == "json":
        for event in answer["events"]:
            print(as_json(event))
    elif answer["events"]:
        table(answer["events"], verb.columns)
    sys.stdout.flush()


def show_event(event: Event, verb: Verb, output: str) -> None:
    """The same for one that has just happened; columns cannot be made to fit what is still to come."""
    document = to_builtins(event) | {"at": rfc3339((event.at - EPOCH) // timedelta(microseconds=1))}
    if output == "json":
        print(as_json(document), flush=True)
    else:
        cells = (text_of(document[column]) for column in verb.columns)
        print(("  " if for_people() else "\t").join(cells), flush=True)


def end_of_log(client: Client) -> int:
    """The newest event's number: asked for a request that nobody made, the server answers where the log ends."""
    return int(client.call("list_events", request_id="-", limit=1)["nextCursor"])
