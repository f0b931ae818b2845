"""`completion/complete`: ids of jobs and tasks, types of tasks and names of sessions that begin with what was typed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import mcp_types as types

from holdfast.transport.mcp import resources
from holdfast.transport.mcp.arguments import ACCEPT
from holdfast.transport.mcp.in_process import Sender, ToolRequest
from holdfast.transport.mcp.results import FIRST_ERROR_STATUS, parse_response

MOST_VALUES = 100
"""The protocol's limit."""

Find = Callable[[Sender, str], Awaitable[list[str]]]


async def complete(sender: Sender, params: types.CompleteRequestParams) -> types.CompleteResult:
    """What an argument of a prompt or of a resource template may be; nothing for one that is free text."""
    where = params.ref.uri if isinstance(params.ref, types.ResourceTemplateReference) else params.ref.name
    typed = params.argument.value
    found: dict[str, None] = {}
    for find in _FINDERS.get((where, params.argument.name), ()):
        found |= dict.fromkeys(value for value in await find(sender, typed) if value.startswith(typed))
    values = list(found)
    return types.CompleteResult(
        completion=types.Completion(values=values[:MOST_VALUES], total=len(values), has_more=len(values) > MOST_VALUES)
    )


async def _jobs(sender: Sender, typed: str) -> list[str]:
    page = await _read(sender, "/v1/jobs", prefix=typed, limit=MOST_VALUES)
    return [job["job_id"] for job in page.get("jobs", ())]


async def _tasks(sender: Sender, _: str) -> list[str]:
    page = await _read(sender, "/v1/tasks", limit=MOST_VALUES)
    return [task["id"] for task in page.get("tasks", ())]


async def _types(sender: Sender, _: str) -> list[str]:
    return sorted((await _read(sender, "/v1/tasks/counts")).get("types", {}))


async def _sessions(sender: Sender, _: str) -> list[str]:
    page = await _read(sender, "/v1/sessions", limit=MOST_VALUES)
    return [session["name"] for session in page.get("sessions", ()) if session["status"] == "live"]


async def _read(sender: Sender, path: str, **query: Any) -> dict[str, Any]:
    """A document; empty if the key may not read it: a client then completes nothing."""
    response, document = parse_response(await sender.send(ToolRequest("GET", path, urlencode(query), (ACCEPT,))))
    return {} if response.status >= FIRST_ERROR_STATUS else document


_FINDERS: dict[tuple[str, str], tuple[Find, ...]] = {
    (resources.LEASE.uri, "name"): (_jobs,),
    (resources.TASK.uri, "id"): (_tasks,),
    ("hand_over", "name"): (_jobs, _tasks),
    ("hand_over", "to"): (_sessions,),
    ("work_through_queue", "type"): (_types,),
}
"""Where the values of an argument are found: (URI template or prompt, argument)."""
