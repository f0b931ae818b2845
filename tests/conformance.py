"""Compares every answer in tests with the OpenAPI document: operation, status, body and code.

Validators are compiled when they are first needed and kept, so that this costs a test next to nothing.
"""

from __future__ import annotations

import functools
import json
from email.message import Message
from typing import Any

import jsonschema_rs

from holdfast.core.errors import HoldfastError
from holdfast.operations.operation import Operation
from holdfast.transport.http.routing import Router
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.system.openapi import openapi

UNROUTED = {400, 404, 405, 408, 414, 431}
"""What may be answered to a request that means no operation."""

_HERE = "urn:holdfast:openapi"
_document = json.loads(json.dumps(openapi()).replace('"#/', f'"{_HERE}#/'))
"""The document, with references that lead into it also from a schema that stands alone."""
_registry = jsonschema_rs.Registry([(_HERE, _document)])
_router = Router()


def check_answer(method: str, path: str, status: int, headers: Message, raw: bytes) -> None:
    """Fail if the document does not describe this answer."""
    if method == "OPTIONS":
        return
    operation = _operation(method, path)
    if operation is None:
        assert status in UNROUTED, f"{method} {path} means no operation, yet answered {status}"
        return
    assert operation.name in OPERATION_SCHEMAS, f"{operation.name} needs an entry in transport/http/schemas"
    label = f"{operation.name}: {method} {path} answered {status}"
    described = _response(operation.path, operation.method, status)
    assert described is not None, f"{label}, which its document does not have: {raw[:300]!r}"
    assert headers["X-Request-Id"], f"{label} without a request id"
    content = described.get("content")
    if content is None or method == "HEAD":
        assert not raw, f"{label} with a body, which its document does not have"
        return
    media = headers["Content-Type"].partition(";")[0]
    assert media in content, f"{label} as {media}, its document has {list(content)}"
    if media in {"application/yaml", "application/openmetrics-text"} or media.startswith("text/"):
        return
    wrong = next(_validator(operation.path, operation.method, status, media).iter_errors(json.loads(raw)), None)
    assert wrong is None, f"{label}, but {wrong.message} at {wrong.instance_path}: {raw[:1000]!r}"


def _operation(method: str, path: str) -> Operation | None:
    try:
        return _router.find(method, path.partition("?")[0].encode("latin-1"))[0]
    except HoldfastError:
        return None


def _response(path: str, method: str, status: int) -> Any:
    node = _document["paths"][path.replace("...", "")][method.lower()]
    return _resolve(node["responses"].get(str(status)))


def _resolve(node: Any) -> Any:
    """The target of a reference."""
    while isinstance(node, dict) and "$ref" in node:
        found: Any = _document
        for step in node["$ref"].removeprefix(f"{_HERE}#/").split("/"):
            found = found[step]
        node = found
    return node


@functools.cache
def _validator(path: str, method: str, status: int, media: str) -> jsonschema_rs.Draft202012Validator:
    schema = _response(path, method, status)["content"][media]["schema"]
    return jsonschema_rs.Draft202012Validator(schema, registry=_registry, validate_formats=True)
