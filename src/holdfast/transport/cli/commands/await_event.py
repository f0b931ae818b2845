"""`holdfast await event`: waits until something happens."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.commands.events import end_of_log, has_events, show_events
from holdfast.transport.cli.long_wait import FOR_EVER, ask_patiently
from holdfast.transport.cli.output import say
from holdfast.transport.cli.verbs.verb import Verb


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
        return exit_status.OK
    say("holdfast: nothing happened in time")
    return exit_status.HELD if conflict_status is None else int(conflict_status)
