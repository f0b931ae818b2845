"""`holdfast task create`: a task without a payload has an empty one."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli.commands import call
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Ask and show."""
    if arguments["payload"] is None:
        arguments["payload"] = {}
    return call.run(verb, arguments)
