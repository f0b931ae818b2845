"""The SDK's server with our tools, resources and prompts. This room and its neighbours at the wire import the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from holdfast import __version__
from holdfast.core.errors import Invalid
from holdfast.transport.documents.agent_entry import DESCRIPTION
from holdfast.transport.http.system.openapi import openapi
from holdfast.transport.mcp import notices, resources
from holdfast.transport.mcp.arguments import ask_of
from holdfast.transport.mcp.in_process import Caller
from holdfast.transport.mcp.prompts import PROMPTS, Prompt
from holdfast.transport.mcp.results import REFUSED, refused, result_of, understood
from holdfast.transport.mcp.tool_schema import form_of, input_schema, output_schema
from holdfast.transport.mcp.tools import TOOLS, Tool, operation_of

Context = ServerRequestContext[Any, Any]
Reach = Callable[[Context], Caller]

BAD, MISSING = 400, 404
HOUR_MS = 3_600_000

INSTRUCTIONS = (
    f"{DESCRIPTION} Claim a job before you touch what others might touch too; work through a queue with claim_task and "
    "complete_task. Every result has `agent_contract`: do the first of its `next_actions` that is recommended. "
    "`lease_lost`, `lease_expired` and `lease_superseded` mean: stop at once, it is not yours any more."
)

_PUBLIC = CacheHint(HOUR_MS, "public")


def make_server(desk: Desk, **more: Any) -> Server[Any]:
    """A server where this desk answers; `more` are handlers for what the desk has no answer to."""
    return Server(
        "holdfast",
        version=__version__,
        title="Holdfast",
        description=DESCRIPTION,
        instructions=INSTRUCTIONS,
        cache_hints={
            "tools/list": _PUBLIC,
            "prompts/list": _PUBLIC,
            "resources/list": _PUBLIC,
            "resources/templates/list": _PUBLIC,
            "server/discover": _PUBLIC,
            "resources/read": CacheHint(0, "private"),
        },
        get_tool_input_schema=desk.input_schema,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
        on_subscriptions_listen=desk.listen,
        on_list_prompts=desk.list_prompts,
        on_get_prompt=desk.get_prompt,
        **more,
    )


class Desk:
    """Answers what a client asks for. Its tools ask through whatever `reach` gives for a call."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        document = openapi()
        self._forms = {tool.name: form_of(operation_of(tool), document) for tool in TOOLS}
        self._tools = {tool.name: tool for tool in TOOLS}
        self._shown = [_shown(tool, self._forms[tool.name], document) for tool in TOOLS]
        self._prompts = {prompt.name: prompt for prompt in PROMPTS}

    def input_schema(self, name: str) -> dict[str, Any] | None:
        return next((tool.input_schema for tool in self._shown if tool.name == name), None)

    async def list_tools(self, _: Context, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._shown)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """One request to the operation's handler. A refusal is a result: the model can act on it."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:64]!r}")
        try:
            ask = ask_of(operation_of(tool), self._forms[tool.name], params.arguments or {})
        except Invalid as error:
            return result_of(refused(error))
        return result_of(await self._reach(context).ask(ask))

    async def list_resources(self, _: Context, __: Any) -> types.ListResourcesResult:
        skill = types.Resource(
            uri=resources.SKILL,
            name="skill",
            title="How to work with Holdfast",
            description="The rules on one page: claim, hold, finish, and what loss means.",
            mime_type=resources.MARKDOWN,
        )
        return types.ListResourcesResult(resources=[skill])

    async def list_templates(self, _: Context, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=template.uri,
                    name=template.name,
                    title=template.title,
                    description=template.description,
                    mime_type=resources.JSON,
                )
                for template in resources.TEMPLATES
            ]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        ask = resources.ask_for(uri)
        if ask is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such resource", {"uri": uri})
        reply = await self._reach(context).ask(ask)
        if reply.status >= REFUSED:
            code = types.INVALID_PARAMS if reply.status in {BAD, MISSING} else types.INTERNAL_ERROR
            _, refusal = understood(reply)
            raise MCPError(code, refusal["message"], {"uri": uri, "problem": refusal})
        mime_type = resources.MARKDOWN if uri == resources.SKILL else resources.JSON
        content = types.TextResourceContents(uri=uri, mime_type=mime_type, text=reply.body.decode())
        return types.ReadResourceResult(contents=[content])

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Say which of some leases and tasks have changed, until the client hangs up or the server stops."""
        addresses = params.notifications.resource_subscriptions or []
        wanted = {subject: uri for uri in addresses if (subject := resources.subject_of(uri)) is not None}
        caller = self._reach(context)
        after, answer = await notices.end_of_log(caller)
        if after is None:
            raise MCPError(types.INVALID_PARAMS, answer["message"], {"problem": answer})
        bus = InMemorySubscriptionBus()
        stream = ListenHandler(bus)

        async def follow() -> None:
            try:
                await notices.follow(caller, after, wanted, lambda uri: bus.publish(ResourceUpdated(uri)))
            finally:
                stream.close()

        following = asyncio.ensure_future(follow())
        try:
            return await stream(context, params)
        finally:
            following.cancel()

    async def list_prompts(self, _: Context, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_shown_prompt(prompt) for prompt in PROMPTS])

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = self._prompts.get(params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:64]!r}")
        given = params.arguments or {}
        missing = [argument.name for argument in prompt.arguments if argument.required and not given.get(argument.name)]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"the prompt needs {', '.join(missing)}")
        text = types.TextContent(type="text", text=prompt.write(given))
        message = types.PromptMessage(role="user", content=text)
        return types.GetPromptResult(description=prompt.description, messages=[message])


def _shown(tool: Tool, form: Any, document: dict[str, Any]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(form, document),
        output_schema=output_schema(operation_of(tool), document),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.takes_away,
            idempotent_hint=tool.reads or tool.repeatable,
            open_world_hint=False,
        ),
    )


def _shown_prompt(prompt: Prompt) -> types.Prompt:
    blanks = [
        types.PromptArgument(name=argument.name, description=argument.description, required=argument.required)
        for argument in prompt.arguments
    ]
    return types.Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=blanks)
