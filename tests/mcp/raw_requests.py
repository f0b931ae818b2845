"""Requests to `/mcp` without the SDK, so that a test controls every byte."""

import json
from http.client import HTTPConnection

from tests.mcp.clients import KEY, NEW

ACCEPT = "application/json, text/event-stream"
META = "io.modelcontextprotocol/"


class McpResponse:
    """Status, headers and message of a response, which is JSON or one event."""

    def __init__(self, answer, body):
        self.status, self.headers, self.body = answer.status, answer.headers, body.decode()
        lines = [line.removeprefix("data: ") for line in self.body.splitlines() if line.startswith("data: {")]
        is_json = "json" in (answer.headers["Content-Type"] or "")
        self.json = json.loads(self.body) if is_json else json.loads(lines[0]) if lines else None


def connect(server):
    return HTTPConnection("127.0.0.1", server.port, timeout=30)


def post(server, message, /, *, key=KEY, method="POST", path="/mcp", **headers):
    connection = connect(server)
    try:
        send(connection, message, key=key, method=method, path=path, **headers)
        answer = connection.getresponse()
        return McpResponse(answer, answer.read())
    finally:
        connection.close()


def send(connection, message, /, *, key=KEY, method="POST", path="/mcp", **headers):
    head = {"Content-Type": "application/json", "Accept": ACCEPT}
    if key is not None:
        head["Authorization"] = f"Bearer {key}"
    head |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, json.dumps(message), {name: value for name, value in head.items() if value})


def old(method, **params):
    """A message of the old protocol, which needs no headers."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def new(method, **params):
    """A message of the new protocol, which has the data of the handshake in every request."""
    meta = {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def headers_of(message):
    """The headers that repeat parts of a message of the new protocol."""
    found = {"MCP_Protocol_Version": NEW, "Mcp_Method": message["method"]}
    name = message["params"].get("name") or message["params"].get("uri")
    return found | ({"Mcp_Name": name} if name else {})
