"""MCP resources: a lease, a task, the skill document."""

from __future__ import annotations

from urllib.parse import quote, unquote

import msgspec

from holdfast.transport.mcp.arguments import ACCEPT
from holdfast.transport.mcp.in_process import ToolRequest

SCHEME = "holdfast://"
SKILL = f"{SCHEME}skill"
JSON, MARKDOWN = "application/json", "text/markdown"


class Template(msgspec.Struct, frozen=True):
    """A URI template."""

    uri: str
    name: str
    title: str
    description: str
    path: str
    """Path prefix in the HTTP API."""
    noun: str
    """Prefix of its subject in the event log."""


TEMPLATES = (
    Template(
        f"{SCHEME}leases/{{name}}",
        "lease",
        "Who owns a job",
        "The owner of a job and its progress, or how its last lease ended.",
        "/v1/jobs/",
        "lease",
    ),
    Template(
        f"{SCHEME}tasks/{{id}}",
        "task",
        "A task",
        "A task, with its result once it is completed.",
        "/v1/tasks/",
        "task",
    ),
)


def request_for_resource(uri: str) -> ToolRequest | None:
    """The request that reads a resource, or None for an unknown URI."""
    if uri == SKILL:
        return ToolRequest("GET", "/skill/SKILL.md")
    template, name = _parse_uri(uri)
    if template is None:
        return None
    return ToolRequest("GET", template.path + quote(name, safe="").replace(".", "%2E"), headers=(ACCEPT,))


def event_subject(uri: str) -> str | None:
    """The subject of a resource in the event log, or None if it never changes."""
    template, name = _parse_uri(uri)
    return None if template is None else f"{template.noun}:{name}"


def _parse_uri(uri: str) -> tuple[Template | None, str]:
    """(template, name) of a URI. Slashes in the name may be encoded or not."""
    for template in TEMPLATES:
        start = template.uri.partition("{")[0]
        if uri.startswith(start) and len(uri) > len(start):
            return template, unquote(uri[len(start) :])
    return None, ""
