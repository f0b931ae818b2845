"""`holdfast session open`: the secret is read from a file, never from an argument, which others can see."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.transport.cli.commands import call
from holdfast.transport.cli.credentials import read_private
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Ask and show."""
    path = arguments.pop("secret_file")
    if path is not None:
        arguments["secret"] = (sys.stdin.readline() if path == "-" else read_private(path)).strip()
    return call.run(verb, arguments)
