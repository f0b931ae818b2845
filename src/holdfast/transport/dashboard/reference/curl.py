"""The curl command of an operation's example."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote, urlencode

import msgspec

from holdfast.operations.operation import Operation
from holdfast.transport.http.schemas.examples import Example

KEY_VARIABLE = "HOLDFAST_API_KEY"
_STREAM = "text/event-stream"


def curl(operation: Operation, example: Example, media: str, address: str) -> str:
    """A command for a POSIX shell, one option a line. The key comes from the environment."""
    method = [] if operation.method == "GET" else [f"-X {operation.method}"]
    unbuffered = ["-N"] if media == _STREAM else []
    options = [*unbuffered, *method, shlex.quote(address.rstrip("/") + target(operation, example))]
    lines = [" ".join(["curl", *options])]
    if operation.scope is not None:
        lines.append(f'-H "Authorization: Bearer ${KEY_VARIABLE}"')
    lines += [f"-H {shlex.quote(f'{name.title()}: {value}')}" for name, value in example.headers.items()]
    if example.body is not msgspec.UNSET:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d {shlex.quote(json.dumps(example.body, ensure_ascii=False))}")
    return " \\\n  ".join(lines)


def target(operation: Operation, example: Example) -> str:
    """The path and query of the example. Only a job's id may have slashes of its own."""
    path = operation.path
    for name, value in example.path.items():
        path = path.replace(f"{{{name}...}}", quote(value, safe="/")).replace(f"{{{name}}}", quote(value, safe=""))
    return path + (f"?{urlencode(example.query)}" if example.query else "")
