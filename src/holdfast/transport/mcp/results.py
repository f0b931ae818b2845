"""Translates HTTP responses into MCP tool results."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec

from holdfast.core.errors import Invalid
from holdfast.transport.advice.doors import advise
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.request import Request, encode
from holdfast.transport.mcp.advice import ToolDoor, all_tools
from holdfast.transport.mcp.in_process import ToolResponse
from holdfast.transport.untrusted_text import mark

FIRST_ERROR_STATUS = 400
"""This HTTP status and every larger one are errors."""


def tool_result(
    response: ToolResponse, door: ToolDoor | None = None, operation: str = "", subject: str = ""
) -> types.CallToolResult:
    """The response as structured content and as text, with the list of its untrusted fields.

    Its advice names tools, of the door's list or of all; `operation` and `subject` are those of the request.
    """
    response, document = parse_response(response)
    document = mark(advise(document, door or all_tools(), operation, subject))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=encode(document).decode())],
        structured_content=document,
        is_error=response.status >= FIRST_ERROR_STATUS,
    )


def parse_response(response: ToolResponse) -> tuple[ToolResponse, dict[str, Any]]:
    """(response, its JSON object). A body that is not a JSON object, as from another kind of server, is refused."""
    try:
        document = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict):
        return response, document
    message = f"the server answered {response.status} without a JSON object; check that the URL is a Holdfast server"
    return parse_response(refusal_response(Invalid(message)))


def refusal_response(error: Invalid) -> ToolResponse:
    """A refusal rendered as by the handlers, for a request that was never sent."""

    async def never_called() -> Any:
        raise AssertionError

    rendered = api_errors.render_error(Request({"headers": [], "path": "/mcp"}, never_called), error)
    return ToolResponse(rendered.status, rendered.body)
