"""The MCP endpoint with the tools, resources and prompts of the conformance suite added.

    python -m tests.mcp.conformance_server PORT [sessions | plain]

The application and its `/mcp` are the ones that are shipped. The suite has no key, so one is added to requests
without. With `sessions`, clients of the old protocol get a session: the suite requires that the server can send
requests to its client, which Holdfast never does. With `plain`, nothing is added but the key.
"""

import socket
import sys
import warnings
from functools import partial

import mcp_types as types
import uvicorn
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPDeprecationWarning

from holdfast.app import running_engine, sync_credentials
from holdfast.settings import Settings
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.protocol import LimitedProtocol
from holdfast.transport.http.server import DrainingServer
from holdfast.transport.mcp.endpoint import BODY_LIMIT, Endpoint
from holdfast.transport.mcp.server import McpHandlers, make_server
from tests.mcp.conformance_server import content
from tests.mcp.conformance_server.fixed_tools import FIXED_TOOLS
from tests.mcp.conformance_server.input_tools import INPUT_TOOLS

KEY = "a-root-key-for-the-conformance-suite-0123456789"
SUITE_TOOLS = FIXED_TOOLS | INPUT_TOOLS


class ConformanceHandlers(McpHandlers):
    """Our handlers, with those of the suite added."""

    def input_schema(self, name):
        return SUITE_TOOLS[name].takes if name in SUITE_TOOLS else super().input_schema(name)

    async def list_tools(self, context, params):
        ours = await super().list_tools(context, params)
        return types.ListToolsResult(
            tools=[*ours.tools, *(tool.listed_tool(name) for name, tool in SUITE_TOOLS.items())]
        )

    async def call_tool(self, context, params):
        tool = SUITE_TOOLS.get(params.name)
        return await (super().call_tool(context, params) if tool is None else tool.handle(context, params))

    async def list_resources(self, context, params):
        ours = await super().list_resources(context, params)
        return types.ListResourcesResult(resources=[*ours.resources, *content.resources()])

    async def list_templates(self, context, params):
        ours = await super().list_templates(context, params)
        found = [*ours.resource_templates, *content.templates()]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(self, context, params):
        return content.read(str(params.uri)) or await super().read_resource(context, params)

    async def list_prompts(self, context, params):
        ours = await super().list_prompts(context, params)
        return types.ListPromptsResult(prompts=[*ours.prompts, *content.prompts()])

    async def complete(self, _, __):
        return types.CompleteResult(completion=types.Completion(values=["paris", "park", "party"], total=3))

    async def get_prompt(self, context, params):
        return content.prompt(params) or await super().get_prompt(context, params)


async def return_nothing(_, __):
    return types.EmptyResult()


def make_manager(sender_for, _, *, sessions):
    more = {
        "on_subscribe_resource": return_nothing,
        "on_unsubscribe_resource": return_nothing,
    }
    server = make_server(ConformanceHandlers(sender_for), on_set_logging_level=return_nothing, **more)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))
    return StreamableHTTPSessionManager(server, stateless=not sessions, max_request_body_size=BODY_LIMIT)


class WithKey:
    """Adds the key to requests without one."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {KEY}".encode())]
        await self._app(scope, receive, send)


def main(port, *, sessions, plain):
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the suite tests logging, which is deprecated
    settings = Settings(store="memory:", port=port, root_key=KEY)
    with running_engine(settings) as engine:
        sync_credentials(engine, settings)
        ctx = HandlerContext(engine, settings)
        app = App(ctx)
        if not plain:
            app._mcp = Endpoint(app, ctx, partial(make_manager, sessions=sessions))
        config = uvicorn.Config(WithKey(app), http=LimitedProtocol, ws="none", log_config=None, access_log=False)
        listener = socket.create_server(("127.0.0.1", port))
        DrainingServer(config, engine).run(sockets=[listener])


if __name__ == "__main__":
    main(int(sys.argv[1]), sessions="sessions" in sys.argv[2:], plain="plain" in sys.argv[2:])
