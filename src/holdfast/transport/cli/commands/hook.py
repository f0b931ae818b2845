"""Verb `hook`: answers the hooks of coding agents. It never stops an agent by its exit status."""

from __future__ import annotations

import json
import sys

from holdfast.transport.cli.hooks.answers import refusal
from holdfast.transport.cli.hooks.events import Hook, answer_event
from holdfast.transport.cli.hooks.payload import Payload
from holdfast.transport.cli.hooks.server import Server, Unanswered
from holdfast.transport.cli.hooks.window import Window
from holdfast.transport.cli.hosts.host import BEFORE_TOOL
from holdfast.transport.cli.hosts.table import BY_NAME, CLAUDE_ANSWER
from holdfast.transport.cli.output import escape, print_message
from holdfast.transport.cli.verbs.verb import Invocation

OK, FAILED = 0, 1
"""Hosts take status 2 as a refusal, and others as a fault of the hook, in spite of which they go on."""


def run(invocation: Invocation) -> int:
    """Read what the host writes, do what belongs to the event, and print the answer."""
    arguments = invocation.arguments
    host = BY_NAME.get(arguments["host"])
    event = None if host is None else host.event(arguments["event"])
    if host is None or event is None:
        known = BY_NAME if host is None else [each.name for each in host.hooks.events]
        print_message(f"holdfast: unknown: {escape(arguments['host'] if host is None else arguments['event'])}")
        print_message(f"  one of {', '.join(known)}")
        return FAILED
    refuse = arguments["if_unreachable"] == "refuse"
    try:
        payload = Payload(sys.stdin.read())
        server = Server(arguments["url"], arguments["key_file"])
    except (ValueError, Unanswered) as error:
        print_message(f"holdfast: {escape(str(error))}")
        if refuse and event.kind == BEFORE_TOOL:
            print(json.dumps(refusal(host.hooks.answer, event.name, f"Holdfast cannot be asked: {escape(str(error))}")))
            return OK
        return FAILED
    window = Window(server.url, host.name, payload.session)
    required = bool(arguments["require_claim"])
    hook = Hook(host.hooks.answer, event.name, payload, server, window, required, refuse)
    answer = answer_event(event.kind, hook)
    if answer or host.hooks.answer != CLAUDE_ANSWER:
        print(json.dumps(answer))
    return OK
