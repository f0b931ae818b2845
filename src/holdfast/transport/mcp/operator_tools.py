"""Tools for operators, which a client gets on request, and the sets of tools to choose from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.core.errors import Invalid
from holdfast.transport.mcp.tool import Call, Tool, only
from holdfast.transport.mcp.tools import DEFAULT_TOOLS

_TASK_ECHO = frozenset({"payload", "checkpoint", "progress"})

OPERATOR_TOOLS = (
    Tool(
        "list_events",
        only("list_events"),
        "Read the event log",
        "Read what happened, in order: every claim, renewal, release, result and expiry is an event. Send "
        "`nextCursor` as `after` to continue, and `waitMs` to wait for the next event. After a call whose outcome you "
        "do not know, filter by `requestId`.",
        is_read_only=True,
        summarises="events",
    ),
    Tool(
        "count_tasks",
        only("count_tasks"),
        "Count tasks",
        "Count the tasks by type and status, to see which queues grow and which have dead letters.",
        is_read_only=True,
    ),
    Tool(
        "cancel_task",
        only("cancel_task", _TASK_ECHO),
        "Cancel a task",
        "Cancel a task that nobody should do any more: a pending one at once; with `mode` `request` its worker is "
        "asked to stop, with `force` it loses the task at once. It cannot be undone.",
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        "resolve_task",
        only("resolve_task", _TASK_ECHO),
        "Resolve a dead letter",
        "Mark a dead letter as dealt with, so that lists of what needs attention leave it out. It stays a dead letter.",
        is_idempotent=True,
    ),
    Tool(
        "read_queue",
        only("read_queue"),
        "Read a queue",
        "Read whether a queue is paused, its limit, and how many of its tasks run and wait.",
        is_read_only=True,
    ),
    Tool(
        "set_queue",
        only("set_queue"),
        "Pause or limit a queue",
        "Pause a queue, so that no more of its tasks are claimed, or resume it, or limit how many run at once. What "
        "runs goes on: to drain a queue, pause it and read it until nothing runs. Needs a key with the scope `admin`.",
        is_idempotent=True,
    ),
    Tool(
        "force_release_job",
        only("force_release_job"),
        "Take a job away",
        "Take a job away from its holder, with the `reason`, if that agent is gone for good and its lease would last "
        "too long. The holder is told at its next call. Needs a key with the scope `admin`.",
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        "force_release_reservation",
        only("force_release_reservation", id="reservationId"),
        "Take reserved files away",
        "End a reservation of another agent, with the `reason`, if that agent is gone for good and its lease would "
        "last too long. The holder is told at its next call. Needs a key with the scope `admin`.",
        is_destructive=True,
        is_idempotent=True,
    ),
)


class ToolSet(msgspec.Struct, frozen=True):
    """The tools that a client gets, and which of them calls an operation."""

    name: str
    tools: tuple[Tool, ...]

    @property
    def by_name(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return {tool.name: tool for tool in self.tools}

    def find(self, operation: str, code: str = "") -> tuple[Tool, Call] | None:
        """The tool that calls an operation, and how; None if none does.

        Of several calls of one operation it is the one whose `action` begins the action code: `resume_session`.
        """
        found = [(tool, call) for tool in self.tools for call in tool.calls if call.operation == operation]
        named = [pair for pair in found if pair[1].action is not None and code.startswith(pair[1].action)]
        return next(iter([*named, *found]), None)


DEFAULT, OPERATOR = "default", "operator"
TOOL_SETS = {
    DEFAULT: ToolSet(DEFAULT, DEFAULT_TOOLS),
    OPERATOR: ToolSet(OPERATOR, (*DEFAULT_TOOLS, *OPERATOR_TOOLS)),
}


def tool_set(name: str | None) -> ToolSet:
    """The set with this name; the default one without a name."""
    found = TOOL_SETS.get(name or DEFAULT)
    if found is None:
        message = f"`tools` must be one of: {', '.join(TOOL_SETS)}"
        raise Invalid(message, [{"pointer": "/tools", "code": "invalid", "message": message}])
    return found
