"""Echo servers to compare with: bare uvicorn, and our HTTP server with an operation that only echoes."""

from __future__ import annotations

import socket
import sys

import uvicorn

from holdfast.app import running_engine
from holdfast.operations.bounds import BODY_BYTES
from holdfast.operations.operation import SYSTEM, Operation
from holdfast.operations.table import OPERATIONS
from holdfast.settings import Settings
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.handlers import HANDLERS
from holdfast.transport.http.protocol import LimitedProtocol
from holdfast.transport.http.request import Receive, Request, Response, Scope, Send
from holdfast.transport.http.routing import Router
from holdfast.transport.http.server import DrainingServer


async def bare(_scope: Scope, receive: Receive, send: Send) -> None:
    """A minimal ASGI application that answers with the request's body."""
    message = await receive()
    length = (b"content-length", str(len(message["body"])).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": message["body"]})


async def echo(_ctx: HandlerContext, request: Request) -> Response:
    """Handler that does nothing: what remains is the cost of our protocol, router and middleware."""
    return Response(200, await request.body(BODY_BYTES))


def main() -> None:
    """`python -m bench.echoes bare|holdfast PORT`."""
    kind, port = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=2048)
    options = {"log_config": None, "access_log": False, "ws": "none", "proxy_headers": False}
    if kind == "bare":
        uvicorn.Server(uvicorn.Config(bare, http="httptools", lifespan="off", **options)).run(sockets=[listener])
        return
    settings = Settings(store="memory:")
    with running_engine(settings) as engine:
        app = App(HandlerContext(engine, settings))
        app._router = Router((*OPERATIONS, Operation("echo", "POST", "/echo", SYSTEM, "")))
        HANDLERS["echo"] = echo
        config = uvicorn.Config(app, http=LimitedProtocol, lifespan="on", **options)
        DrainingServer(config, engine).run(sockets=[listener])


if __name__ == "__main__":
    main()
