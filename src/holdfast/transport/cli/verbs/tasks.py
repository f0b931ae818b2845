"""Verbs for tasks: work items that wait in a queue until a worker claims them."""

from __future__ import annotations

from holdfast.core.limits import ON_DEPENDENCY_FAILURE
from holdfast.operations import bounds
from holdfast.transport.cli.durations import parse_duration
from holdfast.transport.cli.verbs.verb import (
    CAPABILITIES,
    CURSOR,
    HELD_STATUS,
    OFFER,
    OFFER_TERMS,
    SESSION_LEASE,
    Verb,
    duration,
    flag,
    limit,
    parse_json,
    positional,
    switch,
)

_ID = positional("ID", "id", "id of the task")
_WORKER = flag("--worker", "worker_id", "WHO", "your name, visible to others ($HOLDFAST_OWNER, or user@host)")
_SESSION = (
    flag("--session", "session_id", "ID", "release the task when this session ends"),
    SESSION_LEASE,
)
_PROOF = (
    flag("--lease", "lease_id", "ID", "the leaseId from the claim (remembered); required in the server's own account"),
    flag("--worker", "worker_id", "WHO", "your name, as in the claim"),
    flag("--token", "fencing_token", "NUMBER", "the fencingToken from the claim, checked too", int),
)
_HANDOVER = (
    flag("--note", "note", "TEXT", "a note for the next attempt"),
    flag("--checkpoint", "checkpoint", "JSON", "data for the next attempt; @file reads a file", parse_json),
)
_PRIORITY_HELP = f"{bounds.TASK_PRIORITY.with_default()}; higher is claimed first"
_PRIORITY = flag("--priority", "priority", "NUMBER", _PRIORITY_HELP, int)
_LEASE_HELP = f"length of a claim: {bounds.TASK_LEASE.with_default()}"
_LEASE = duration("--lease-seconds", "leaseDurationSeconds", _LEASE_HELP)
_WAIT = duration("-w --wait", "wait_seconds", f"wait for at most this long ({bounds.WAIT.default})", parse_duration)
_REASON = flag("--reason", "reason", "TEXT", "why")
_PROGRESS = flag("--progress", "progress", "JSON", "visible to others while you hold the task", parse_json)

TASK_VERBS = (
    Verb(
        "next",
        "claim the next task",
        (
            positional("TYPE", "types", "only tasks of these types (all)", required=False, many=True),
            _WAIT,
            _WORKER,
            *_SESSION,
            CAPABILITIES,
            HELD_STATUS,
        ),
        "claim_task",
        "commands.tasks:claim_next",
        is_claim=True,
        more="Exit status 3: no task is ready.",
    ),
    Verb(
        "task create",
        "put a task into its queue",
        (
            positional("TYPE", "type", "type of the task, which names its queue"),
            flag("--payload", "payload", "JSON", "an object for the worker ({}); @file reads a file", parse_json),
            _PRIORITY,
            flag("--max-attempts", "maxAttempts", "NUMBER", bounds.TASK_MAX_ATTEMPTS.with_default(), int),
            _LEASE,
            flag("--at", "scheduledAt", "TIME", "not before this time, such as 2030-01-31T12:00:00Z"),
            flag("--key", "uniqueKey", "KEY", "one open task per key: a second create returns the first task"),
            flag("--tag", "tag", "TEXT", "a label to filter lists by"),
            flag("--depends-on", "dependsOn", "ID", "a task that must complete first, repeatable", many=True),
            flag(
                "--on-dependency-failure", "onDependencyFailure", "RULE",
                "if one of those fails: hold (wait on), cancel or run", choices=ON_DEPENDENCY_FAILURE,
            ),
            flag("--requires", "requires", "WORD", "only for workers that can do this; repeat it for more", many=True),
            flag(
                "--concurrency-key", "concurrencyKey", "KEY",
                "no more tasks with the same key run than the queue allows for each",
            ),
            switch("--approval", "approval", "a person must approve it before the first claim"),
        ),
        "create_task",
        "commands.tasks:create",
    ),
    Verb(
        "task claim",
        "claim this task",
        (_ID, _WORKER, *_SESSION, OFFER, CAPABILITIES, HELD_STATUS),
        "claim_task_by_id",
        is_claim=True,
    ),
    Verb("task heartbeat", "renew the lease of a task", (_ID, *_PROOF, *_HANDOVER, _PROGRESS), "heartbeat"),
    Verb(
        "task complete",
        "complete a task with its result",
        (
            _ID,
            *_PROOF,
            flag("--result", "result", "JSON", "an object; @file reads a file", parse_json),
            flag("--output-id", "output_id", "TEXT", "id or address of the artifact"),
        ),
        "complete_task",
    ),
    Verb(
        "task fail",
        "report a failed attempt: it is retried, or a dead letter after the last",
        (
            _ID,
            *_PROOF,
            _REASON,
            flag("--error-code", "error_code", "CODE", "the reason as a code, for programs"),
            duration("--retry-after", "retry_after_seconds", "retry no sooner than this"),
            switch("--permanent", "permanent", "do not retry"),
            *_HANDOVER,
        ),
        "fail_task",
    ),
    Verb(
        "task release",
        "return a task to its queue without counting the attempt",
        (_ID, *_PROOF, duration("--delay", "delay_seconds", "ready again no sooner than this"), *_HANDOVER),
        "release_task",
    ),
    Verb(
        "task offer",
        "offer a task to another worker, which claims it with the code that is printed",
        (_ID, _PROOF[0], *_HANDOVER, *OFFER_TERMS),
        "offer_task",
        "commands.call:offer",
    ),
    Verb(
        "task cancel",
        "cancel a task",
        (
            _ID,
            _REASON,
            flag(
                "--mode", "mode", "MODE", "pending (only if unclaimed), request (ask its holder) or force",
                choices=("pending", "request", "force"),
            ),
        ),
        "cancel_task",
    ),
    Verb(
        "task ask",
        "ask a person about a task, which waits for the answer",
        (
            _ID,
            positional("QUESTION", "question", "what you want to know"),
            flag("--choice", "choices", "TEXT", "a possible answer (any text is one); may be repeated", many=True),
            flag("--deadline", "answer_by", "TIME", "when it expires, such as 2030-01-31T12:00:00Z"),
            flag("--default", "on_timeout", "TEXT", "the answer at the deadline (the task becomes a dead letter)"),
            *_PROOF,
            *_HANDOVER,
        ),
        "ask_task",
    ),
    Verb(
        "questions",
        "list the questions to people, open ones first",
        (limit(bounds.QUESTION_PAGE), CURSOR),
        "list_questions",
        rows="questions",
        columns=("id", "status", "task_type", "question", "choices", "worker", "asked_at", "deadline", "answer"),
    ),
    Verb(
        "answer",
        "answer a question, or approve a task",
        (
            positional("ID", "id", "id of the question"),
            positional("ANSWER", "answer", "one of its choices, or any text if it has none"),
            _REASON,
        ),
        "answer_question",
        more="The answers to an approval are approve and reject.\n"
        "Needs a key with the scope answer, which the key of a machine does not have.",
    ),
    Verb("task requeue", "put a dead letter back into its queue", (_ID,), "requeue_task"),
    Verb("task get", "show a task", (_ID, _WAIT), "check_task_status"),
    Verb(
        "task ls",
        "list tasks, newest first",
        (
            flag(
                "--status", "status", "STATE", "pending, claimed, completed, cancelled or dead_letter",
                choices=("pending", "claimed", "completed", "cancelled", "dead_letter"),
            ),
            flag("--type", "type", "TYPE", "only tasks of this type"),
            flag("--tag", "tag", "TEXT", "only tasks with this label"),
            flag("--worker", "worker", "WHO", "only tasks that this worker holds"),
            limit(bounds.TASK_PAGE),
            CURSOR,
        ),
        "list_tasks",
        rows="tasks",
        columns=("id", "type", "status", "priority", "attemptCount", "claimedBy", "updatedAt"),
    ),
    Verb(
        "task history",
        "list the events of a task",
        (_ID, limit(bounds.TASK_EVENT_PAGE)),
        "task_events",
        "commands.events:history",
        rows="events",
        columns=("version", "at", "kind", "actor", "data"),
    ),
    Verb(
        "task deps",
        "list what a task needs; with -o json also what needs it",
        (_ID, limit(bounds.TASK_PAGE), CURSOR),
        "task_dependencies",
        rows="dependsOn",
        columns=("id", "type", "status", "waitingFor", "met"),
    ),
)  # fmt: skip
