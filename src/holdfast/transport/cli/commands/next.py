"""`holdfast next`: takes the next task, and may wait for one."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.long_wait import ask_patiently
from holdfast.transport.cli.output import is_document, say, show
from holdfast.transport.cli.verbs.verb import Verb


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Claim and show; the exit status tells whether there was anything."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status")
    wait = arguments.pop("wait_seconds") or 0.0
    arguments["types"] = arguments["types"] or None
    answer = ask_patiently(client_for(arguments), verb.operation, arguments, wait, _is_task)
    if _is_task(answer) or is_document(output):
        show(answer, verb, output)
    else:
        busy = f"{answer.get('inFlight')} is still in flight" if answer.get("message") == "busy" else "nothing to do"
        say(f"holdfast: {busy}")
    return exit_status.of_claim(answer, conflict_status)


def _is_task(answer: dict[str, Any]) -> bool:
    return answer.get("task") is not None
