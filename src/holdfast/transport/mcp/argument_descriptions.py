"""Descriptions of the arguments of tools, each with an example."""

from __future__ import annotations

from typing import Any

from holdfast.operations.bounds import CHECKPOINT, TASK_PAYLOAD
from holdfast.transport.lease_uses import HOLDERS

_LEASE = "3f0c…"
_TASK = "tsk_01…"
_TIME = "2026-07-28T09:00:00Z"

Text = tuple[str, str]
"""What the argument is, and an example."""

_ARGUMENTS: dict[str, Text] = {
    "jobId": ("The job's name.", "repo/issue-1842"),
    "owner": ("Your name, for others.", "agent-1"),
    "id": ("The task's id.", _TASK),
    "reservationId": ("The `reservation_id` that reserve_files returned.", _LEASE),
    "leaseId": ("The lease id of your claim: your proof.", _LEASE),
    "ttlMs": ("How long it lasts without a heartbeat; a multiple of 1000.", "600000"),
    "waitMs": ("How long to wait if the answer is not available at once.", "30000"),
    "waitingId": ("`waiting_id` of the last answer, at most 10 s old: keeps your place in the queue.", "w_8d2f"),
    "idempotencyKey": ("Repeated calls act once.", "claim-7"),
    "note": ("For the next holder.", "Only the docs are left."),
    "checkpoint": (f"To continue from: {CHECKPOINT}.", '{"done": ["a.py"]}'),
    "progress": ("JSON, shown to others.", '{"percent": 40}'),
    "metadata": ("A JSON object, visible to everyone.", '{"branch": "fix-login"}'),
    "token": ("Your fencing token.", "42"),
    "fencingToken": ("Your fencing token.", "42"),
    "sessionId": ("Your session: what you claim ends with it.", _LEASE),
    "sessionLeaseId": ("Its lease id.", _LEASE),
    "again": ("Claim it even if it is done already.", "true"),
    "offer": ("The code that its holder gave you, to take it over.", "k3v9"),
    "type": ("The task type: letters, digits, `-` and `_`.", "process_document"),
    "types": ("Further task types that you accept.", '["resize_image"]'),
    "capabilities": ("What you can do: you get no task that requires anything else.", '["gpu", "repo:shop"]'),
    "workerId": ("Your name, for others.", "agent-1"),
    "limit": ("Results of one page.", "20"),
    "cursor": ("`nextCursor` of the last page.", _TASK),
    "space": ("The repository: `space` in its `.holdfast.toml`.", "acme/shop"),
    "paths": ("Files and patterns, relative to the root of the repository.", '["README.md", "src/auth/"]'),
    "reason": ("What went wrong.", "The test database did not start."),
    "name": ("A name that stays the same across restarts.", "agent-1"),
}
"""For every tool that has the argument, unless the next table has another."""

_CONTEXT: dict[str, Text] = {
    "leaseId": ("The `lease_id` of the session: proof that it is yours.", _LEASE),
    "sessionId": ("The `session_id` of the session.", _LEASE),
    "turn": ("The number of your turn.", "12"),
    "lastAction": ("What you did last.", "Wrote the tests."),
    "nextAction": ("What you do next.", "Run them."),
    "contextHash": ("A hash of the context that you keep elsewhere.", "sha256:9f2c"),
    "memoryRef": ("Where you keep the rest of your memory.", "notes/agent-1.md"),
    "context": ("JSON that you need when you resume.", '{"branch": "fix-login"}'),
    "ifVersion": ("Write only if `context_version` is still this.", "3"),
}
_RENEWED_SESSION: Text = ("Your session, to renew it.", _LEASE)
_BY_OPERATION: dict[str, dict[str, Text]] = {
    "claim_job": {"jobId": ("A name for the work that all agents would choose.", "repo/issue-1842")},
    "claim_any_job": {
        "alternatives": ("Other jobs that will do as well, if `jobId` is held.", '["staging-2", "staging-3"]'),
        "order": ("In which order they are tried.", "random"),
    },
    "release_job": {
        "outcome": ("How it ends.", "done"),
        "result": ("The result, for who claims it later; with `done`.", '{"pullRequest": 77}'),
        "doneForMs": ("How long it counts as done; a multiple of 1000.", "86400000"),
    },
    "list_claimed_jobs": {
        "prefix": ("How their names begin.", "repo/"),
        "state": ("Those that are held, or those that are done.", "claimed"),
    },
    "reserve_files": {
        "mode": ("`exclusive` to change the files; `shared` to read them while nobody changes them.", "shared"),
        "reason": ("What you do with the files, for others to read.", "Rewrite the login."),
    },
    "extend_reservation": {"reservationId": ("Your reservation, to add `paths` to it.", _LEASE)},
    "release_files": {"paths": ("Only these, as you wrote them; without it, all.", '["src/auth/"]')},
    "check_files": {
        "paths": ("Files, relative to the root of the repository, without wildcards.", '["src/auth/login.py"]'),
        "leaseIds": ("The lease ids of your own reservations.", f'["{_LEASE}"]'),
    },
    "list_reservations": {
        "path": ("Only reservations of this file.", "src/auth/login.py"),
        "owner": ("Only reservations of this owner.", "agent-2"),
    },
    "read_reservation": {"reservationId": ("Only this reservation.", _LEASE)},
    "heartbeat": {"id": ("The id of the task, or the `reservation_id`.", _TASK)},
    "create_task": {
        "payload": (f"The input of the worker: {TASK_PAYLOAD}.", '{"file": "a.pdf"}'),
        "priority": ("Larger is claimed first.", "10"),
        "maxAttempts": ("How often it is tried.", "5"),
        "leaseDurationMs": ("How long a worker holds it without a heartbeat; a multiple of 1000.", "300000"),
        "scheduledAt": ("Not before this time, at most 30 days ahead.", _TIME),
        "uniqueKey": ("At most one unfinished task has this key.", "nightly-report"),
        "onDuplicate": ("What to do if one has the `uniqueKey`.", "return"),
        "tag": ("A label to find it by.", "release-2"),
        "dependsOn": ("Ids or unique keys of tasks that must complete first.", '["nightly-report"]'),
        "onDependencyFailure": ("If one of those fails.", "cancel"),
        "deadlineAt": ("When the task ends, even if it is not done.", _TIME),
        "maxRunMs": ("How long one attempt may last.", "3600000"),
        "backoff": ("The delay between attempts.", '{"kind": "fixed", "base_seconds": 30}'),
        "requires": ("Only workers with all these capabilities get it.", '["gpu", "repo:shop"]'),
        "concurrencyKey": ("Limits how many with this key run.", "customer-7"),
    },
    "claim_task": {
        "limit": ("Claim up to so many tasks at once.", "1"),
        "leaseDurationMs": ("How long you hold it at least without a heartbeat; a multiple of 1000.", "900000"),
    },
    "claim_task_by_id": {"id": ("Claim this task only.", _TASK)},
    "complete_task": {
        "result": (f"The result: {TASK_PAYLOAD}.", '{"pages": 9}'),
        "outputId": ("The id of an artifact that you stored.", "out_81"),
    },
    "fail_task": {
        "errorCode": ("A short code for the failure.", "DISK_FULL"),
        "retryAfterMs": ("How long to wait before the next attempt; a multiple of 1000.", "60000"),
        "permanent": ("Whether retrying is pointless.", "false"),
    },
    "ask_task": {
        "question": ("What you must know, with what a reader needs to decide it.", "Remove the old API?"),
        "choices": ("The possible answers; without it, any text.", '["yes", "no"]'),
        "deadline": ("No answer is taken after it.", _TIME),
        "onTimeout": ("The answer at the deadline; without it the task becomes a dead letter.", "no"),
    },
    "release_task": {"delayMs": ("How long it cannot be claimed; a multiple of 1000.", "60000")},
    "list_tasks": {
        "status": ("Only tasks in this state.", "pending"),
        "tag": ("Only tasks with this tag.", "release-2"),
        "key": ("The same as `uniqueKey`.", "nightly-report"),
        "uniqueKey": ("Only tasks with this unique key.", "nightly-report"),
        "waiting": ("Only tasks that wait for this.", "dependencies"),
        "worker": ("Only tasks that this worker holds.", "agent-2"),
        "sessionId": ("Only tasks that this session holds.", _LEASE),
        "resolved": ("Only dead letters that are resolved, or that are not.", "false"),
        "createdAfter": ("Created after this time.", _TIME),
        "createdBefore": ("Created before this time.", _TIME),
        "updatedAfter": ("Changed after this time.", _TIME),
        "updatedBefore": ("Changed before this time.", _TIME),
    },
    "set_queue": {
        "paused": ("Whether its tasks cannot be claimed.", "true"),
        "maxRunning": ("How many may run at once; 0 for no limit.", "4"),
        "maxRunningPerKey": ("The same for each concurrency key.", "1"),
    },
    "requeue_task": {"resetAttempts": ("Whether its attempts are counted from zero.", "true")},
    "begin_session": {
        **_CONTEXT,
        "secret": ("The secret that opening the session returned; required to resume it.", "9b1f…"),
        "lane": ("Whether it may hold only one task at a time.", "true"),
        "ifLive": ("`fence` takes over although your former process still runs: its lease ids then end.", "refuse"),
    },
    "list_mine": {
        "owner": ("Only what was claimed under this name.", "agent-1"),
        "sessionId": ("Only what this session holds; with its `secret`, the answer has the lease ids.", _LEASE),
        "secret": ("The secret that opening the session returned.", "9b1f…"),
    },
    **dict.fromkeys(("heartbeat_session", "write_context", "read_session", "close_session"), _CONTEXT),
    "list_events": {
        "after": ("`nextCursor` of the previous page, or the `seq` of the last event you have.", "1200"),
        "subject": ("Only events of this subject.", "lease:repo/issue-1842"),
        "kind": ("Only events of this kind.", "lease.expired"),
        "requestId": ("Only events of this request.", "req_01JADQ5Z8Y"),
    },
    "cancel_task": {
        "mode": ("`pending`: only if nobody has claimed it; `request` asks its worker; `force`.", "request"),
        "reason": ("Why it is cancelled.", "The issue was closed."),
    },
    "force_release_job": {"reason": ("Why you take it away.", "Its machine was shut down.")},
    "force_release_reservation": {"reason": ("Why you take it away.", "Its machine was shut down.")},
    "": {
        "kind": ("How the delay grows.", "exponential"),
        "base_seconds": ("The first delay.", "1"),
        "max_seconds": ("The longest delay.", "3600"),
        "jitter": ("The random share of it.", "0.1"),
    },
}
"""By operation; the empty name is for fields inside of arguments."""


def describe(operation: str, argument: str, schema: dict[str, Any]) -> str:
    """What an argument of an operation is, with an example."""
    found = _BY_OPERATION.get(operation, {}).get(argument) or _ARGUMENTS.get(argument)
    if argument == "sessionId" and operation in HOLDERS:
        found = _RENEWED_SESSION
    if found is None:  # a new field: the tests ask for its description
        return str(schema.get("description", ""))
    text, example = found
    return f"{text} E.g. `{example}`."
