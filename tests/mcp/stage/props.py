"""What the conformance suite looks for by name: tools whose answers are fixed, and a few that tell how they get on."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import mcp_types as types

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
NOTHING = {"type": "object", "properties": {}}
PAUSE_SECONDS = 0.05


class Prop(NamedTuple):
    """A tool of the stage."""

    act: Callable[[Any, types.CallToolRequestParams], Awaitable[Any]]
    takes: dict[str, Any] = NOTHING

    def shown(self, name):
        return types.Tool(name=name, description=f"{name}, for the conformance suite.", input_schema=self.takes)


def text(words):
    return types.TextContent(type="text", text=words)


def image():
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri, words, mime_type="text/plain"):
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return types.EmbeddedResource(type="resource", resource=contents)


def said(*content, is_error=False):
    return types.CallToolResult(content=list(content), is_error=is_error)


def fixed(*content, is_error=False):
    """A tool that always answers this."""

    async def act(_, __):
        return said(*content, is_error=is_error)

    return Prop(act)


async def _tell_of_progress(context, _):
    for part in (0, 50, 100):
        await context.session.report_progress(part, 100)
        await asyncio.sleep(PAUSE_SECONDS)
    return said(text("done"))


async def _log(context, _):
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", words, related_request_id=context.request_id)
        await asyncio.sleep(PAUSE_SECONDS)
    return said(text("done"))


async def _close_the_stream(context, _):
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await asyncio.sleep(PAUSE_SECONDS)
    return said(text("back again"))


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

PROPS = {
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
    "test_tool_with_progress": Prop(_tell_of_progress),
    "test_tool_with_logging": Prop(_log),
    "test_logging_tool": Prop(_log),
    "test_reconnection": Prop(_close_the_stream),
    "json_schema_2020_12_tool": fixed(text("wide"))._replace(takes=WIDE_SCHEMA),
    "test_headers": fixed(text("headed"))._replace(takes=HEADED_SCHEMA),
}
