"""Change notifications for subscribed leases and tasks, from the event log."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.operations.bounds import EVENT_PAGE
from holdfast.transport.ids import ids
from holdfast.transport.mcp.arguments import ACCEPT
from holdfast.transport.mcp.in_process import Sender, ToolRequest
from holdfast.transport.mcp.results import FIRST_ERROR_STATUS, parse_response

WAIT_SECONDS = 50
EVENTS = "/v1/events"


async def end_of_log(sender: Sender) -> tuple[int | None, dict[str, Any]]:
    """(the cursor after the last event, or None if the client may not read the log; the response).

    A filter by a request id that was never used matches nothing, so the response contains only the end of the log.
    """
    request = ToolRequest("GET", EVENTS, f"request_id={ids.request_id()}", (ACCEPT,))
    response, document = parse_response(await sender.send(request))
    return (None if response.status >= FIRST_ERROR_STATUS else document["nextCursor"]), document


async def follow(sender: Sender, after: int, uris: Mapping[str, str], notify: Callable[[str], Awaitable[None]]) -> None:
    """Call `notify` with the URI of each subject that changes, until the log cannot be read any longer."""
    while True:
        began = time.monotonic()
        query = f"after={after}&limit={EVENT_PAGE.most}&wait_seconds={WAIT_SECONDS}"
        request = ToolRequest("GET", EVENTS, query, (ACCEPT,))
        response, page = parse_response(await sender.send(request))
        # A server that is stopping ends waits early: no events, and less time than requested.
        ended_early = not page.get("events") and not page.get("hasMore") and time.monotonic() - began < WAIT_SECONDS - 1
        if response.status >= FIRST_ERROR_STATUS or ended_early:
            return
        after = page["nextCursor"]
        changed = dict.fromkeys(event["subject"] for event in page["events"])
        for uri in [uris[subject] for subject in changed if subject in uris]:
            await notify(uri)
