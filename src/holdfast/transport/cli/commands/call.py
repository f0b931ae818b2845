"""Verbs that send one request and print its answer."""

from __future__ import annotations

import sys
import webbrowser
from typing import Any

from holdfast.client.errors import HoldfastError, Invalid
from holdfast.transport.cli import exit_status
from holdfast.transport.cli.connection import client_for
from holdfast.transport.cli.credentials import read_private
from holdfast.transport.cli.display.answers import print_answer
from holdfast.transport.cli.held_leases import remembering
from holdfast.transport.cli.output import escape, is_document, print_document, print_message
from holdfast.transport.cli.verbs.verb import Invocation, WrongUsage

_KEY_PROBLEMS = {
    "missing_api_key": "the server needs a key, and none was found for it",
    "invalid_api_key": "the server does not know the key that was found for it",
}


def call(invocation: Invocation) -> int:
    """Call the verb's operation with its arguments, as they are."""
    with remembering(invocation) as remember:
        answer = client_for(invocation.arguments).call(invocation.verb.operation, **invocation.arguments)
        remember(answer)
    print_answer(answer, invocation)
    if invocation.verb.is_claim:
        return exit_status.of_claim(answer, invocation.held_status(exit_status.HELD))
    return exit_status.OK


def offer(invocation: Invocation) -> int:
    """`offer`, `files offer` and `task offer`: make an offer, or withdraw it."""
    arguments = invocation.arguments
    if not arguments.pop("withdraw"):
        return call(invocation)
    client = client_for(arguments)
    kept = {name: value for name, value in arguments.items() if name in {"job_id", "id", "lease_id"}}
    answer = client.call(f"withdraw_{invocation.verb.operation.removeprefix('offer_')}_offer", **kept)
    print_answer(answer, invocation)
    return exit_status.OK


def open_session(invocation: Invocation) -> int:
    """`session open`: the secret comes from a file or stdin, because other users can list arguments."""
    invocation.arguments["secret"] = _take_secret(invocation)
    return call(invocation)


def list_mine(invocation: Invocation) -> int:
    """`mine`: what the key holds, also of other agents than this one."""
    arguments = invocation.arguments
    arguments["owner"], arguments["session_secret"] = arguments.pop("whose"), _take_secret(invocation)
    return call(invocation)


def _take_secret(invocation: Invocation) -> str | None:
    """The secret of a session, in a file or on stdin."""
    path = invocation.arguments.pop("secret_file")
    if path is None:
        return None
    return (sys.stdin.readline() if path == "-" else read_private(path)).strip()


def add_webhook(invocation: Invocation) -> int:
    """`webhook add`: its field `url` is the argument ADDRESS, because --url is the server."""
    arguments = invocation.arguments
    client = client_for(arguments)
    arguments["url"] = arguments.pop("address")
    print_answer(client.call(invocation.verb.operation, **arguments), invocation)
    return exit_status.OK


def pause_webhook(invocation: Invocation) -> int:
    """`webhook pause`."""
    return _set_webhook_state(invocation, "paused")


def resume_webhook(invocation: Invocation) -> int:
    """`webhook resume`."""
    return _set_webhook_state(invocation, "active")


def _set_webhook_state(invocation: Invocation, state: str) -> int:
    invocation.arguments["state"] = state
    return call(invocation)


def link_dashboard(invocation: Invocation) -> int:
    """`dashboard`: print a sign-in link, or open it in a browser."""
    should_open = invocation.arguments.pop("open")
    answer = client_for(invocation.arguments).call(invocation.verb.operation)
    if invocation.fields or is_document(invocation.output):
        print_answer(answer, invocation)
    else:
        print(answer["url"])
        print_message(f"The link signs in one browser, within {answer['expires_in_seconds'] // 60} minutes.")
    if should_open and not webbrowser.open(answer["url"]):
        print_message("holdfast: cannot open a browser here: open the link yourself")
    return exit_status.OK


def report_error(error: HoldfastError | WrongUsage, invocation: Invocation) -> int:
    """Print what went wrong and what to do next; the exit status."""
    if isinstance(error, WrongUsage):
        print_message(f"holdfast: {error}")
        return exit_status.USAGE
    from holdfast.transport.cli.advice import in_commands  # reads the table of operations
    from holdfast.transport.cli.next_steps import next_steps

    document = in_commands(error.document, invocation.verb, invocation.arguments)
    if is_document(invocation.output) and document:
        print_document(document, invocation.output)
    message = _KEY_PROBLEMS.get(error.code) or error.message
    print_message(f"holdfast: {escape(message)} ({escape(error.code)})")
    details: list[dict[str, Any]] = error.document.get("errors") or []
    for detail in details:
        if detail.get("message") != error.message:
            print_message(f"  {escape(str(detail.get('message') or detail))}")
    steps = [escape(step) for step in next_steps(error, document, invocation.verb)]
    if steps:
        print_message("  next: " + "\n        ".join(steps))
    status = exit_status.USAGE if isinstance(error, Invalid) else exit_status.of_error(error.code, error.status)
    return invocation.held_status(status) if status == exit_status.HELD else status
