"""Translates HTTP responses into MCP tool results."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec
from msgspec.structs import replace

from holdfast.core.errors import Invalid
from holdfast.transport import untrusted_text
from holdfast.transport.advice.wording import advise
from holdfast.transport.http.api import errors as api_errors
from holdfast.transport.http.request import Request, encode
from holdfast.transport.mcp.answers import summaries
from holdfast.transport.mcp.answers.field_names import in_arguments_of
from holdfast.transport.mcp.answers.tool_wording import ToolWording
from holdfast.transport.mcp.in_process import ToolResponse
from holdfast.transport.mcp.tool import Call, Tool
from holdfast.transport.mcp.tool_schema import PATH, Field
from holdfast.transport.untrusted_text import mark

FIRST_ERROR_STATUS = 400
"""This HTTP status and every larger one are errors."""

_CONTRACT = "agent_contract"


class Called(msgspec.Struct, frozen=True):
    """A call whose answer is rendered, and the tools that its advice may name."""

    tool: Tool
    call: Call
    arguments: dict[str, Any]
    fields: tuple[Field, ...]
    wording: ToolWording

    @property
    def subject(self) -> str:
        """The id or name in the path of the request."""
        values = (self.arguments.get(field.argument) for field in self.fields if field.location == PATH)
        return next((value for value in values if isinstance(value, str)), "")


def tool_result(response: ToolResponse, called: Called) -> types.CallToolResult:
    """The response as structured content and as text, with the list of its untrusted fields."""
    response, document = parse_response(response)
    is_error = response.status >= FIRST_ERROR_STATUS
    document = in_arguments_of(called.fields, document) if is_error else shown(document, called)
    document = _with_rule(mark(advise(document, called.wording, called.call.operation, called.subject)))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=encode(document).decode())],
        structured_content=document,
        is_error=is_error,
    )


def shown(document: dict[str, Any], called: Called) -> dict[str, Any]:
    """What of a successful answer is shown."""
    document = summaries.without(document, called.call.omits)
    return document if called.tool.is_whole else summaries.summary(document, called.tool.summarises)


def with_warnings(response: ToolResponse, warnings: list[str]) -> ToolResponse:
    """The response with further warnings, before its own."""
    if not warnings:
        return response
    response, document = parse_response(response)
    document["warnings"] = list(dict.fromkeys([*warnings, *document.get("warnings", ())]))
    return replace(response, body=encode(document))


def _with_rule(document: dict[str, Any]) -> dict[str, Any]:
    """The document whose advice says what the text of others is, if it has any."""
    contract = document.get(_CONTRACT)
    if untrusted_text.KEY not in document or not isinstance(contract, dict):
        return document
    return document | {_CONTRACT: contract | {untrusted_text.KEY: untrusted_text.RULE}}


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
