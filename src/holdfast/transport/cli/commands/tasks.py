"""Verbs `next`, `task create` and `await task`."""

from __future__ import annotations

from typing import Any

from holdfast.transport.cli import exit_status
from holdfast.transport.cli.commands.call import call
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.held_leases import remembering
from holdfast.transport.cli.long_wait import NO_LIMIT, call_until
from holdfast.transport.cli.output import is_document, print_message
from holdfast.transport.cli.verbs.verb import Invocation

_FINISHED = {"completed": exit_status.OK, "cancelled": exit_status.STALE, "dead_letter": exit_status.STALE}


def create(invocation: Invocation) -> int:
    """Create a task; its payload is empty if none is given."""
    if invocation.arguments["payload"] is None:
        invocation.arguments["payload"] = {}
    return call(invocation)


def claim_next(invocation: Invocation) -> int:
    """Claim the next task, and wait for one if asked to."""
    arguments = invocation.arguments
    wait = arguments.pop("wait_seconds") or 0.0
    arguments["types"] = arguments["types"] or None
    with remembering(invocation) as remember:
        answer = call_until(client_for(arguments), invocation.verb.operation, arguments, wait, _has_task)
        remember(answer)
    if _has_task(answer) or is_document(invocation.output):
        print_answer(answer, invocation)
    elif answer.get("message") == "busy":
        print_message(f"holdfast: this session still holds {answer.get('inFlight')}")
    else:
        print_message("holdfast: no task is ready")
    return exit_status.of_claim(answer, invocation.held_status(exit_status.HELD))


def await_task(invocation: Invocation) -> int:
    """Wait until a task is finished and print it; the exit status says how it ended."""
    arguments = invocation.arguments
    wait = arguments.pop("wait_seconds")
    limit = NO_LIMIT if wait is None else wait
    task = call_until(client_for(arguments), invocation.verb.operation, arguments, limit, _is_finished)
    print_answer(task, invocation)
    return _FINISHED.get(task["status"], invocation.held_status(exit_status.HELD))


def _has_task(answer: dict[str, Any]) -> bool:
    return answer.get("task") is not None


def _is_finished(task: dict[str, Any]) -> bool:
    return task["status"] in _FINISHED
