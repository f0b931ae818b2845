"""Verbs for the event log: list it, follow it, and wait for something to happen."""

from __future__ import annotations

from holdfast.operations import bounds
from holdfast.transport.cli.durations import parse_duration
from holdfast.transport.cli.verbs.verb import Verb, duration, flag, limit, positional, switch

_SUBJECT = flag("--subject", "subject", "SUBJECT", "only this subject: task:tsk_…, lease:deploy/web, lease:deploy/*")
_KIND = flag("--kind", "kind", "KIND", "only this kind: task.claimed, task.*")
_AFTER = flag("--after", "after", "SEQ", "only events after this sequence number", int)
_WAIT = duration("-w --wait", "wait_seconds", "wait for at most this long (no limit)", parse_duration)
_LATE_STATUS = flag("-E", "conflict_status", "NUMBER", "exit status when the wait is over (1)", int)
EVENT_COLUMNS = ("seq", "at", "kind", "subject", "actor", "data")

EVENT_VERBS = (
    Verb(
        "events",
        "list events, oldest first",
        (
            switch("-f --follow", "follow", "print new events as they happen"),
            _SUBJECT,
            _KIND,
            _AFTER,
            limit(bounds.EVENT_PAGE),
        ),
        "list_events",
        "commands.events:list_or_follow",
        rows="events",
        columns=EVENT_COLUMNS,
        more="Without --after: the last 100 events, or with --follow only new ones.\n"
        "JSON output is one event a line, YAML one document an event.",
    ),
    Verb(
        "await task",
        "wait until a task is finished, and show it",
        (positional("ID", "id", "id of the task"), _WAIT, _LATE_STATUS),
        "check_task_status",
        "commands.tasks:await_task",
        more="Exit status 0: completed, 1: not finished in time (-E changes it), 5: cancelled or a dead letter.",
    ),
    Verb(
        "await event",
        "wait until an event happens, and show it",
        (_SUBJECT, _KIND, _AFTER, _WAIT, _LATE_STATUS),
        "list_events",
        "commands.events:await_event",
        rows="events",
        columns=EVENT_COLUMNS,
        more="Without --after: only new events. Exit status 1: no event in time (-E changes it).",
    ),
)
