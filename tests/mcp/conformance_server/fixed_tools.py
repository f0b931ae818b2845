"""Tools that the conformance suite calls by name: most have fixed answers, some report progress."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import mcp_types as types

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
NOTHING = {"type": "object", "properties": {}}
PAUSE_SECONDS = 0.05


class FixedTool(NamedTuple):
    """A tool of the test server."""

    handle: Callable[[Any, types.CallToolRequestParams], Awaitable[Any]]
    takes: dict[str, Any] = NOTHING

    def listed_tool(self, name):
        return types.Tool(name=name, description=f"{name}, for the conformance suite.", input_schema=self.takes)


def text(content):
    return types.TextContent(type="text", text=content)


def image():
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri, content, mime_type="text/plain"):
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return types.EmbeddedResource(type="resource", resource=contents)


def tool_result(*content, is_error=False):
    return types.CallToolResult(content=list(content), is_error=is_error)


def fixed(*content, is_error=False):
    """A tool that always returns this content."""

    async def handle(_, __):
        return tool_result(*content, is_error=is_error)

    return FixedTool(handle)


async def _report_progress(context, _):
    for part in (0, 50, 100):
        await context.session.report_progress(part, 100)
        await asyncio.sleep(PAUSE_SECONDS)
    return tool_result(text("done"))


async def _log(context, _):
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", line, related_request_id=context.request_id)
        await asyncio.sleep(PAUSE_SECONDS)
    return tool_result(text("done"))


async def _close_the_stream(context, _):
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await asyncio.sleep(PAUSE_SECONDS)
    return tool_result(text("back again"))


_ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
WIDE_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": _ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADED_SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
}

FIXED_TOOLS = {
    "test_simple_text": fixed(text("This is a simple text response for testing.")),
    "test_image_content": fixed(image()),
    "test_audio_content": fixed(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")),
    "test_embedded_resource": fixed(embedded("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": fixed(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", json.dumps({"test": "data", "value": 123}), "application/json"),
    ),
    "test_error_handling": fixed(text("This tool intentionally returns an error for testing"), is_error=True),
    "test_tool_with_progress": FixedTool(_report_progress),
    "test_tool_with_logging": FixedTool(_log),
    "test_logging_tool": FixedTool(_log),
    "test_reconnection": FixedTool(_close_the_stream),
    "json_schema_2020_12_tool": fixed(text("wide"))._replace(takes=WIDE_SCHEMA),
    "test_headers": fixed(text("headed"))._replace(takes=HEADED_SCHEMA),
}
