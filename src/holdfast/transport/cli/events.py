"""`holdfast events`: the log as it is, or as it grows."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.client.client import Client
from holdfast.transport.cli import exits
from holdfast.transport.cli.call import client_for
from holdfast.transport.cli.patience import FOR_EVER, ask_patiently
from holdfast.transport.cli.show import as_json, say, table
from holdfast.transport.cli.verb import Verb

LAST = 100


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Show a page, or go on for ever."""
    output, follow = arguments.pop("output"), arguments.pop("follow")
    client = client_for(arguments)
    if arguments["after"] is None:
        arguments["after"] = end_of_log(client) - (0 if follow else arguments["limit"] or LAST)
    arguments["after"] = max(arguments["after"], 0)
    answer = client.call(verb.operation, **arguments)
    show_events(answer, verb, output)
    while follow:
        arguments["after"] = answer["nextCursor"]
        answer = ask_patiently(client, verb.operation, arguments, FOR_EVER, has_events)
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


def end_of_log(client: Client) -> int:
    """The newest event's number: asked for a request that nobody made, the server answers where the log ends."""
    return int(client.call("list_events", request_id="-", limit=1)["nextCursor"])
