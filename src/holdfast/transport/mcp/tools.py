"""Every tool, in the order that clients see. Descriptions are for the model: when to use it, what a refusal means."""

from __future__ import annotations

import msgspec

from holdfast.operations.table import OPERATIONS, Operation


class Tool(msgspec.Struct, frozen=True):
    """An operation as a model sees it."""

    name: str
    operation: str
    title: str
    description: str
    reads: bool = False
    """It changes nothing."""
    takes_away: bool = False
    """It may end something that somebody still wanted."""
    repeatable: bool = False
    """Twice is as good as once."""


TOOLS = (
    Tool(
        "claim_job",
        "claim_job",
        "Claim a job",
        "Before you start work that others might also start (an issue, a deployment, a migration), claim it under a "
        "name that all of you would choose. Status `claimed` means that it is yours: keep `lease_id`, read `previous` "
        "and send heartbeats; `held` means that somebody else is at it. Then take other work, or claim again with "
        "`waitMs` to stand in line.",
    ),
    Tool(
        "heartbeat_job",
        "heartbeat_job",
        "Keep a job",
        "While you work on a job, renew it at `heartbeat_every_seconds` and leave a `checkpoint` and a `note` for "
        "whoever might have to take over. If it answers `lease_lost`, stop at once and publish nothing: the job is not "
        "yours any more.",
        repeatable=True,
    ),
    Tool(
        "release_job",
        "release_job",
        "Release a job",
        "When you are done with a job, or give up, let the next one have it and leave a `note`. `lease_lost` means "
        "that it was not yours any more: what you did last may clash with the new owner's work.",
        repeatable=True,
    ),
    Tool(
        "get_job_owner",
        "get_job_owner",
        "Who owns a job",
        "Look who owns a job and how far it is, or how its last ownership ended, without claiming it.",
        reads=True,
    ),
    Tool(
        "list_claimed_jobs",
        "list_claimed_jobs",
        "Jobs that are owned",
        "See which jobs somebody owns right now, before you choose work of your own. `prefix` narrows the list; "
        "`nextCursor` leads to the next page.",
        reads=True,
    ),
    Tool(
        "create_task",
        "create_task",
        "Create a task",
        "Put work into the queue of its type, for any worker to claim. Send an `idempotencyKey` so that repeating the "
        "call makes no second task, or a `uniqueKey` so that only one such task lives. If the plan refuses, tell "
        "your user rather than try again.",
    ),
    Tool(
        "claim_task",
        "claim_task",
        "Claim the next task",
        "Ask for the next task of some types when you are free to work; with `waitMs` it waits for one. Keep `leaseId` "
        "and read `previousAttempt`. `task: null` means that there is nothing to do: ask again later.",
    ),
    Tool(
        "heartbeat_task",
        "heartbeat",
        "Keep a task",
        "While you work on a task, renew it at least every third of `leaseDurationSeconds`, with a `checkpoint`. "
        "`cancelRequested: true` asks you to stop and release it. If it is refused as expired or superseded, stop at "
        "once: another may have the task.",
        repeatable=True,
    ),
    Tool(
        "complete_task",
        "complete_task",
        "Complete a task",
        "When a task is done, hand in its `result`; it is final. If it is refused as expired or superseded, your work "
        "came too late: do not publish it.",
        repeatable=True,
    ),
    Tool(
        "fail_task",
        "fail_task",
        "Fail a task",
        "When a task went wrong, say why in `reason`; it will be tried again while it has attempts left. Send "
        "`permanent: true` only if trying again is pointless: then it becomes a dead letter.",
        takes_away=True,
        repeatable=True,
    ),
    Tool(
        "release_task",
        "release_task",
        "Hand a task back",
        "When a task is not yours to do, hand it back with a `note`; the attempt is not counted. `delayMs` keeps it "
        "from being claimed again at once.",
        repeatable=True,
    ),
    Tool(
        "check_task_status",
        "check_task_status",
        "Look at a task",
        "See a task as it is, with its result once there is one. `waitMs` waits for its end, so that you need not ask "
        "again and again.",
        reads=True,
    ),
    Tool(
        "list_tasks",
        "list_tasks",
        "List tasks",
        "Find tasks by type, status, tag or worker, newest first. `nextCursor` leads to the next page.",
        reads=True,
    ),
    Tool(
        "list_events",
        "list_events",
        "Follow the log",
        "Learn what happened, in order: every claim, renewal, release, result and lapse is an event. Send "
        "`nextCursor` as `after` to go on, and `waitMs` to wait for the next one. After a call whose outcome you do "
        "not know, ask by `requestId`.",
        reads=True,
    ),
    Tool(
        "resume_session",
        "begin_session",
        "Begin or resume a session",
        "Begin a session under a stable `name`, or with its `secret` resume it after a restart: you get back its "
        "context and all that it held, under new lease ids. Keep `secret` where your next life finds it. If it is "
        "refused, the name belongs to somebody alive: choose another.",
        takes_away=True,
    ),
)

_OPERATIONS = {operation.name: operation for operation in OPERATIONS}


def operation_of(tool: Tool) -> Operation:
    """The operation that a tool stands for."""
    return _OPERATIONS[tool.operation]
