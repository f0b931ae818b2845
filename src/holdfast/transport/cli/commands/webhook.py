"""`holdfast webhook add`, `pause`, `resume`: what they say stands in the verb, or under another name than a flag's."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.output import show
from holdfast.transport.cli.verbs.verb import Verb

_STATES = {"webhook pause": "paused", "webhook resume": "active"}


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Ask and show; the exit status."""
    output = arguments.pop("output")
    client = client_for(arguments)  # takes --url, which names the server
    if verb.name in _STATES:
        arguments["state"] = _STATES[verb.name]
    else:
        arguments["url"] = arguments.pop("address")
    show(client.call(verb.operation, **arguments), verb, output)
    return exit_status.OK
