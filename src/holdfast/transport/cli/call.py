"""Verbs that ask a server one thing and show what it answers."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exits
from holdfast.transport.cli.caller import BadAddress, Caller, Refusal, Unreachable, read_key
from holdfast.transport.cli.show import as_json, escape, say, show
from holdfast.transport.cli.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Ask and show; the exit status."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status", None)
    answer = caller_of(arguments).call(verb.operation, **arguments)
    show(answer, verb, output)
    return exits.of_claim(answer, conflict_status) if verb.claims else exits.OK


def caller_of(arguments: dict[str, Any]) -> Caller:
    """Whom to ask: takes its own flags out of the arguments."""
    return Caller(arguments.pop("url", None), read_key(arguments.pop("key_file", None)))


def refused(error: Exception, output: str, conflict_status: int | None = None) -> int:
    """Tell what went wrong and what to do next; the exit status."""
    if isinstance(error, BadAddress):
        say(f"holdfast: {error}")
        return exits.USAGE
    if isinstance(error, Unreachable):
        say(f"holdfast: no answer from {escape(str(error))}")
        say("  next: start one with `holdfast serve`, or name another with --url or HOLDFAST_URL")
        return exits.UNREACHABLE
    assert isinstance(error, Refusal)
    if output == "json":
        print(as_json(error.document))
    say(f"holdfast: {escape(error.message)} ({escape(error.code)})")
    for wrong in error.document.get("errors") or ():
        say(f"  {escape(str(wrong.get('message') or wrong))}")
    if error.next_action is not None:
        say(f"  next: {escape(error.next_action)}")
    status = exits.of_refusal(error.code, error.status)
    return conflict_status if status == exits.HELD and conflict_status is not None else status
