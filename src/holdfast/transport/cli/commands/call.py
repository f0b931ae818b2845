"""Verbs that ask a server one thing and show what it answers."""

from __future__ import annotations

from typing import Any

from holdfast.client.client import Client
from holdfast.client.errors import HoldfastError, Unreachable
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.credentials import read_key
from holdfast.transport.cli.http_sender import BadAddress, client_of
from holdfast.transport.cli.output import document, escape, is_document, say, show
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Ask and show; the exit status."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status", None)
    answer = client_for(arguments).call(verb.operation, **arguments)
    show(answer, verb, output)
    return exit_status.of_claim(answer, conflict_status) if verb.claims else exit_status.OK


def client_for(arguments: dict[str, Any]) -> Client:
    """Whom to ask: takes its own flags out of the arguments."""
    url = arguments.pop("url", None)
    return client_of(url, read_key(arguments.pop("key_file", None), url))


def refused(error: HoldfastError | BadAddress, output: str, conflict_status: int | None = None) -> int:
    """Tell what went wrong and what to do next; the exit status."""
    if isinstance(error, BadAddress):
        say(f"holdfast: {error}")
        return exit_status.USAGE
    if is_document(output) and error.document:
        document(error.document, output)
    say(f"holdfast: {escape(error.message)} ({escape(error.code)})")
    for wrong in error.document.get("errors") or ():
        if wrong.get("message") != error.message:
            say(f"  {escape(str(wrong.get('message') or wrong))}")
    hint = error.hint
    if isinstance(error, Unreachable):
        hint = "start a server with `holdfast serve`, or name another with --url or HOLDFAST_URL"
    if hint:
        say(f"  next: {escape(hint.removeprefix('Next: '))}")
    status = exit_status.of_error(error.code, error.status)
    return conflict_status if status == exit_status.HELD and conflict_status is not None else status
