"""`holdfast await event`: waits until something happens."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exits
from holdfast.transport.cli.call import client_for
from holdfast.transport.cli.events import end_of_log, has_events, show_events
from holdfast.transport.cli.patience import FOR_EVER, ask_patiently
from holdfast.transport.cli.show import say
from holdfast.transport.cli.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Wait and show."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status")
    wait = arguments.pop("wait_seconds")
    client = client_for(arguments)
    if arguments["after"] is None:
        arguments["after"] = end_of_log(client)
    answer = ask_patiently(client, verb.operation, arguments, FOR_EVER if wait is None else wait, has_events)
    if has_events(answer):
        show_events(answer, verb, output)
        return exits.OK
    say("holdfast: nothing happened in time")
    return exits.HELD if conflict_status is None else int(conflict_status)
