"""Change notices: whoever listens hears when a lease or a task has changed. The log of events tells."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.transport.ids import ids
from holdfast.transport.mcp.arguments import ACCEPT
from holdfast.transport.mcp.in_process import Ask, Caller
from holdfast.transport.mcp.results import REFUSED, understood

WAIT_SECONDS = 50
EVENTS = "/v1/events"


async def end_of_log(caller: Caller) -> tuple[int | None, dict[str, Any]]:
    """(the cursor after the last event, or None if the caller may not look; the answer).

    Asked what a request did that never was, the log answers nothing, and where it ends.
    """
    ask = Ask("GET", EVENTS, f"request_id={ids.request_id()}", (ACCEPT,))
    reply, document = understood(await caller.ask(ask))
    return (None if reply.status >= REFUSED else document["nextCursor"]), document


async def follow(caller: Caller, after: int, wanted: Mapping[str, str], tell: Callable[[str], Awaitable[None]]) -> None:
    """Tell each address whose subject changes, until the log cannot be followed any longer."""
    while True:
        began = time.monotonic()
        ask = Ask("GET", EVENTS, f"after={after}&limit=1000&wait_seconds={WAIT_SECONDS}", (ACCEPT,))
        reply, page = understood(await caller.ask(ask))
        # A server that stops sends everybody away before their time: nothing came, and too soon.
        hurried = not page.get("events") and not page.get("hasMore") and time.monotonic() - began < WAIT_SECONDS - 1
        if reply.status >= REFUSED or hurried:
            return
        after = page["nextCursor"]
        changed = dict.fromkeys(event["subject"] for event in page["events"])
        for uri in [wanted[subject] for subject in changed if subject in wanted]:
            await tell(uri)
