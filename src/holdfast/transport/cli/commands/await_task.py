"""`holdfast await task`: waits until somebody has finished a task."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import client_for
from holdfast.transport.cli.long_wait import FOR_EVER, ask_patiently
from holdfast.transport.cli.output import show
from holdfast.transport.cli.verbs.verb import Verb

_OUTCOMES = {"completed": exit_status.OK, "cancelled": exit_status.STALE, "dead_letter": exit_status.STALE}


def run(verb: Verb, arguments: dict[str, Any]) -> int:
    """Wait and show; the exit status tells how it ended."""
    output, conflict_status = arguments.pop("output"), arguments.pop("conflict_status")
    wait = arguments.pop("wait_seconds")
    client = client_for(arguments)
    task = ask_patiently(client, verb.operation, arguments, FOR_EVER if wait is None else wait, _is_over)
    show(task, verb, output)
    return _OUTCOMES.get(task["status"], exit_status.HELD if conflict_status is None else conflict_status)


def _is_over(task: dict[str, Any]) -> bool:
    return task["status"] in _OUTCOMES
