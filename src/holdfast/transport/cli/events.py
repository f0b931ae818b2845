"""`holdfast events`: the log as it is, or as it grows."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError
from holdfast.transport.cli import exits
from holdfast.transport.cli.call import client_for
from holdfast.transport.cli.patience import FOR_EVER, ask_patiently
from holdfast.transport.cli.show import WIDE, document, is_document, say, table
from holdfast.transport.cli.verb import Verb

LAST = 100


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Show a page, or go on for ever."""
    output, follow = arguments.pop("output"), arguments.pop("follow")
    client = client_for(arguments)
    if arguments["after"] is None:
        answer = _last(client, verb, arguments, 0 if follow else arguments["limit"] or LAST)
    else:
        answer = client.call(verb.operation, **arguments)
    show_events(answer, verb, output)
    while follow:
        arguments["after"] = answer["nextCursor"]
        answer = ask_patiently(client, verb.operation, arguments, FOR_EVER, has_events)
        show_events(answer, verb, output)
    if answer["hasMore"]:
        say(f"there are more: --after {answer['nextCursor']}")
    return exits.OK


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


def end_of_log(client: Client) -> int:
    """The newest event's number: asked for a request that nobody made, the server answers where the log ends."""
    return int(client.call("list_events", request_id="-", limit=1)["nextCursor"])
