"""`holdfast dashboard`: a link for the browser, printed or opened."""

from __future__ import annotations

import webbrowser
from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.output import say, show
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Ask for a link; the exit status."""
    output, wanted = arguments.pop("output"), arguments.pop("open")
    answer = client_for(arguments).call(verb.operation)
    if output == "json":
        show(answer, verb, output)
    else:
        print(answer["url"])
        say(f"It signs one browser in, within {answer['expires_in_seconds'] // 60} minutes.")
    if wanted and not webbrowser.open(answer["url"]):
        say("holdfast: no browser could be opened here: follow the link yourself")
    return exit_status.OK
