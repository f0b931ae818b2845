"""Verbs about the log: what happened, and waiting for something to happen."""

from __future__ import annotations

from holdfast.transport.cli.verbs.jobs import HELD_STATUS, LIMIT
from holdfast.transport.cli.verbs.verb import Verb, flag, switch, word

_SUBJECT = flag("--subject", "subject", "SUBJECT", "only about this: task:tsk_…, lease:deploy/web; * at its end is any")
_KIND = flag("--kind", "kind", "KIND", "only of this kind: task.claimed; * at its end is any")
_AFTER = flag("--after", "after", "SEQ", "what came after this event", int)
_WAIT = flag("-w --wait", "wait_seconds", "SECONDS", "give up after so long (waits for ever)", float)
EVENT_COLUMNS = ("seq", "at", "kind", "subject", "actor", "data")

LOG_VERBS = (
    Verb(
        "events",
        "what happened, oldest first",
        (switch("-f --follow", "follow", "go on with what happens from now on"), _SUBJECT, _KIND, _AFTER, LIMIT),
        "list_events",
        "commands.events",
        rows="events",
        columns=EVENT_COLUMNS,
        more="Without --after: the last 100, or with --follow what happens from now on.\n"
        "JSON is one event a line, YAML one event a document.",
    ),
    Verb(
        "await task",
        "wait until a task is finished, and show it",
        (word("ID", "id", "which task"), _WAIT, HELD_STATUS),
        "check_task_status",
        "commands.await_task",
        more="Exit status 0: completed, 1: still not finished (-E changes it), 5: cancelled or a dead letter.",
    ),
    Verb(
        "await event",
        "wait until something happens, and show it",
        (_SUBJECT, _KIND, _AFTER, _WAIT, HELD_STATUS),
        "list_events",
        "commands.await_event",
        rows="events",
        columns=EVENT_COLUMNS,
        more="Without --after: from now on. Exit status 1: nothing happened in time (-E changes it).",
    ),
)
