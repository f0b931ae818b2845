"""Our endpoint with what the conformance suite looks for added to our own tools.

    python -m tests.mcp.stage PORT [sessions]

The application, its door, its checks and its `/mcp` are the ones that are shipped, and so are the tools beside the
suite's. The suite has no key, so whoever comes without one is given one. With `sessions`, clients of the old era get
a session: without one a server can ask its client nothing, which Holdfast never does and the suite requires.
"""

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
from holdfast.transport.mcp.endpoint import BODY_LIMIT, Endpoint
from holdfast.transport.mcp.server import McpHandlers, make_server
from tests.mcp.stage import script
from tests.mcp.stage.asking import ASKING
from tests.mcp.stage.props import PROPS

KEY = "a-root-key-for-the-conformance-suite-0123456789"
STAGE = PROPS | ASKING


class Stage(McpHandlers):
    """Our desk, which knows the suite's names as well."""

    def input_schema(self, name):
        return STAGE[name].takes if name in STAGE else super().input_schema(name)

    async def list_tools(self, context, params):
        ours = await super().list_tools(context, params)
        return types.ListToolsResult(tools=[*ours.tools, *(prop.shown(name) for name, prop in STAGE.items())])

    async def call_tool(self, context, params):
        prop = STAGE.get(params.name)
        return await (super().call_tool(context, params) if prop is None else prop.act(context, params))

    async def list_resources(self, context, params):
        ours = await super().list_resources(context, params)
        return types.ListResourcesResult(resources=[*ours.resources, *script.resources()])

    async def list_templates(self, context, params):
        ours = await super().list_templates(context, params)
        found = [*ours.resource_templates, *script.templates()]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(self, context, params):
        return script.read(str(params.uri)) or await super().read_resource(context, params)

    async def list_prompts(self, context, params):
        ours = await super().list_prompts(context, params)
        return types.ListPromptsResult(prompts=[*ours.prompts, *script.prompts()])

    async def get_prompt(self, context, params):
        return script.prompt(params) or await super().get_prompt(context, params)


async def complete(_, __):
    return types.CompleteResult(completion=types.Completion(values=["paris", "park", "party"], total=3))


async def agree(_, __):
    return types.EmptyResult()


def make(reach, *, sessions):
    more = {"on_completion": complete, "on_subscribe_resource": agree, "on_unsubscribe_resource": agree}
    server = make_server(Stage(reach), on_set_logging_level=agree, **more)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))
    return StreamableHTTPSessionManager(server, stateless=not sessions, max_request_body_size=BODY_LIMIT)


class Keyed:
    """The application, for callers who bring no key."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {KEY}".encode())]
        await self._app(scope, receive, send)


def main(port, *, sessions):
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the old era's logging is what is asked for
    settings = Settings(store="memory:", port=port, root_key=KEY)
    with running_engine(settings) as engine:
        sync_credentials(engine, settings)
        ctx = HandlerContext(engine, settings)
        app = App(ctx)
        app._mcp = Endpoint(app, ctx, partial(make, sessions=sessions))
        protocol = "holdfast.transport.http.protocol:LimitedProtocol"
        uvicorn.run(Keyed(app), port=port, http=protocol, ws="none", log_config=None, access_log=False)


if __name__ == "__main__":
    main(int(sys.argv[1]), sessions="sessions" in sys.argv[2:])
