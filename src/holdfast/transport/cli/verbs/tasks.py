"""Verbs about tasks: work that waits in a queue until somebody holds it."""

from __future__ import annotations

from holdfast.transport.cli.verbs.jobs import CURSOR, HELD_STATUS, LIMIT
from holdfast.transport.cli.verbs.verb import Verb, flag, json_text, switch, word

_ID = word("ID", "id", "which task")
_WORKER = flag("--worker", "worker_id", "WHO", "who you are, for others to read")
_SESSION = flag("--session", "session_id", "ID", "the task goes when this session does")
_HELD = (
    flag("--lease", "lease_id", "ID", "the proof that the claim answered"),
    flag("--token", "fencing_token", "NUMBER", "its fencing token, checked as well", int),
)
_LEFT = (
    flag("--note", "note", "TEXT", "for the next attempt"),
    flag("--checkpoint", "checkpoint", "JSON", "for the next attempt; @file reads one", json_text),
)
_WAIT = flag("-w --wait", "wait_seconds", "SECONDS", "wait for so long (0)", float)
_REASON = flag("--reason", "reason", "TEXT", "what went wrong")
_PROGRESS = flag("--progress", "progress", "JSON", "shown to everybody while you hold it", json_text)

TASK_VERBS = (
    Verb(
        "next",
        "take the next task",
        (
            word("TYPE", "types", "only from these queues (all)", required=False, many=True),
            _WAIT,
            _WORKER,
            _SESSION,
            HELD_STATUS,
        ),
        "claim_task",
        "commands.next",
        claims=True,
        more="Exit status 3: there was nothing to do.",
    ),
    Verb(
        "task create",
        "put work into its queue",
        (
            word("TYPE", "type", "which queue"),
            flag("--payload", "payload", "JSON", "an object that says what to do ({}); @file reads one", json_text),
            flag("--priority", "priority", "NUMBER", "larger is sooner: 0 to 100 (0)", int),
            flag("--max-attempts", "maxAttempts", "NUMBER", "1 to 10 (3)", int),
            flag("--lease-seconds", "leaseDurationSeconds", "SECONDS", "how long a claim holds: 30 to 3600 (300)", int),
            flag("--at", "scheduledAt", "TIME", "not before then, as 2030-01-31T12:00:00Z"),
            flag("--key", "uniqueKey", "KEY", "one live task per key: a second create answers with the first"),
            flag("--tag", "tag", "TEXT", "a label, for lists"),
        ),
        "create_task",
        "commands.create",
    ),
    Verb("task claim", "take this task", (_ID, _WORKER, _SESSION, HELD_STATUS), "claim_task_by_id", claims=True),
    Verb("task heartbeat", "still at work: the lease starts again", (_ID, *_HELD, *_LEFT, _PROGRESS), "heartbeat"),
    Verb(
        "task complete",
        "done, with its result",
        (
            _ID,
            *_HELD,
            flag("--result", "result", "JSON", "an object; @file reads one", json_text),
            flag("--output-id", "output_id", "TEXT", "where the artifact is"),
        ),
        "complete_task",
    ),
    Verb(
        "task fail",
        "it went wrong: again later, or a dead letter after the last attempt",
        (
            _ID,
            *_HELD,
            _REASON,
            flag("--error-code", "error_code", "CODE", "the same for programs"),
            flag("--retry-after", "retry_after_seconds", "SECONDS", "not before then", int),
            switch("--permanent", "permanent", "no more attempts"),
            *_LEFT,
        ),
        "fail_task",
    ),
    Verb(
        "task release",
        "hand it back; the attempt is not counted",
        (_ID, *_HELD, flag("--delay", "delay_seconds", "SECONDS", "not before then", int), *_LEFT),
        "release_task",
    ),
    Verb(
        "task cancel",
        "nobody needs it any more",
        (
            _ID,
            _REASON,
            flag(
                "--mode", "mode", "MODE", "pending (only if nobody holds it), request or force",
                choices=("pending", "request", "force"),
            ),
        ),
        "cancel_task",
    ),
    Verb("task requeue", "give a dead letter another life", (_ID,), "requeue_task"),
    Verb("task get", "a task as it is", (_ID, _WAIT), "check_task_status"),
    Verb(
        "task ls",
        "tasks, newest first",
        (
            flag("--status", "status", "STATE", "pending, claimed, completed, cancelled or dead_letter"),
            flag("--type", "type", "TYPE", "only of this queue"),
            flag("--tag", "tag", "TEXT", "only with this label"),
            flag("--worker", "worker", "WHO", "only what they hold"),
            LIMIT,
            CURSOR,
        ),
        "list_tasks",
        rows="tasks",
        columns=("id", "type", "status", "priority", "attemptCount", "claimedBy", "updatedAt"),
    ),
    Verb(
        "task history",
        "everything that happened to a task",
        (_ID, LIMIT),
        "task_events",
        rows="events",
        columns=("version", "at", "kind", "actor", "data"),
    ),
)  # fmt: skip
