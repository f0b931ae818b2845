"""From an answer to what a client is shown of it."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec

from holdfast.core.errors import Invalid
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.request import Request, encode
from holdfast.transport.mcp.in_process import Reply
from holdfast.transport.mcp.tools import TOOLS

REFUSED = 400
"""This status and every larger one."""

_BY_OPERATION = {tool.operation: tool.name for tool in TOOLS}


def result_of(reply: Reply) -> types.CallToolResult:
    """The answer as an object and as text."""
    reply, document = understood(reply)
    for step in document.get("agent_contract", {}).get("next_actions", ()):
        if step["action"] in _BY_OPERATION:
            step["tool"] = _BY_OPERATION[step["action"]]
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=encode(document).decode())],
        structured_content=document,
        is_error=reply.status >= REFUSED,
    )


def understood(reply: Reply) -> tuple[Reply, dict[str, Any]]:
    """The answer and its JSON. Whoever answers at an address may be no Holdfast at all: that is a refusal too."""
    try:
        document = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict):
        return reply, document
    return understood(
        refused(Invalid(f"the answer was {reply.status} and no JSON: is this the address of a Holdfast?"))
    )


def refused(error: Invalid) -> Reply:
    """A refusal in the same form as the handlers', for what never reached one."""

    async def nobody() -> Any:
        raise AssertionError

    response = api_errors.render_error(Request({"headers": [], "path": "/mcp"}, nobody), error)
    return Reply(response.status, response.body)
