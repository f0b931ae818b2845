"""What a client may read by address: a lease, a task, the skill."""

from __future__ import annotations

from urllib.parse import quote, unquote

import msgspec

from holdfast.transport.mcp.arguments import ACCEPT
from holdfast.transport.mcp.in_process import Ask

SCHEME = "holdfast://"
SKILL = f"{SCHEME}skill"
JSON, MARKDOWN = "application/json", "text/markdown"


class Template(msgspec.Struct, frozen=True):
    """Addresses of one kind."""

    uri: str
    name: str
    title: str
    description: str
    path: str
    """Where the HTTP handlers have it."""
    noun: str
    """What the log calls it."""


TEMPLATES = (
    Template(
        f"{SCHEME}leases/{{name}}",
        "lease",
        "Who owns a job",
        "The owner of a job and its progress, or how its last ownership ended.",
        "/v1/jobs/",
        "lease",
    ),
    Template(
        f"{SCHEME}tasks/{{id}}",
        "task",
        "A task",
        "A task as it is, with its result once there is one.",
        "/v1/tasks/",
        "task",
    ),
)


def ask_for(uri: str) -> Ask | None:
    """The request that reads this address, or None if there is no such kind of address."""
    if uri == SKILL:
        return Ask("GET", "/skill/SKILL.md")
    template, name = _named(uri)
    if template is None:
        return None
    return Ask("GET", template.path + quote(name, safe="").replace(".", "%2E"), headers=(ACCEPT,))


def subject_of(uri: str) -> str | None:
    """What the log calls the thing at this address, or None if it never changes."""
    template, name = _named(uri)
    return None if template is None else f"{template.noun}:{name}"


def _named(uri: str) -> tuple[Template | None, str]:
    """The kind of an address, and the name in it, which may come with its slashes as they are, or encoded."""
    for template in TEMPLATES:
        start = template.uri.partition("{")[0]
        if uri.startswith(start) and len(uri) > len(start):
            return template, unquote(uri[len(start) :])
    return None, ""
