"""MCP tools in the order of the list. Descriptions state when to use a tool and what a refusal means."""

from __future__ import annotations

import msgspec

from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS


class Tool(msgspec.Struct, frozen=True):
    """An operation as an MCP tool."""

    name: str
    operation: str
    title: str
    description: str
    is_read_only: bool = False
    """It changes nothing."""
    is_destructive: bool = False
    """It may end something that is still in use."""
    is_idempotent: bool = False
    """Repeating it has no further effect."""

    @property
    def shows_text_of_others(self) -> bool:
        """Whether its result can have text that other agents wrote: not if it only creates something of the caller."""
        return self.operation not in _ONLY_OWN_TEXT


_ONLY_OWN_TEXT = {"create_task", "heartbeat_job", "heartbeat_reservation"}


TOOLS = (
    Tool(
        "claim_job",
        "claim_job",
        "Claim a job",
        "Claim a job before you start work that other agents might also start (an issue, a deployment, a migration); "
        "choose a name that all of them would choose. Status `claimed`: you hold it; keep `lease_id`, read `previous` "
        "and send heartbeats. Status `held`: another worker holds it; take other work, or claim again with `waitMs` "
        "to wait in its queue; status `done`: it is done already, use `result`.",
    ),
    Tool(
        "claim_any_job",
        "claim_any_job",
        "Claim any of several jobs",
        "Claim the first of several jobs that is free, when any of them will do: a staging machine, an account, one of "
        "five slots. Status `claimed`: you hold the one in `job_id`; from then on it is a job like any other. Status "
        "`held`: all are taken; claim again with `waitMs` to get whichever is free first.",
    ),
    Tool(
        "heartbeat_job",
        "heartbeat_job",
        "Renew a job",
        "While you work on a job, renew it every `heartbeat_every_seconds` and leave a `checkpoint` and a `note` for "
        "a successor. On `lease_lost`, stop at once and publish nothing: you no longer hold the job.",
        is_idempotent=True,
    ),
    Tool(
        "release_job",
        "release_job",
        "Release a job",
        "Release a job: with `outcome` `done` and a `result` if the work is done, so that nobody does it again; with "
        "`failed` or `free` and a `note` for the next owner if you give up. `lease_lost` means that you no "
        "longer held it: your last changes may conflict with the work of the new owner.",
        is_idempotent=True,
    ),
    Tool(
        "get_job_owner",
        "get_job_owner",
        "Read the owner of a job",
        "Read who owns a job and its progress, or how its last lease ended, without claiming it.",
        is_read_only=True,
    ),
    Tool(
        "list_claimed_jobs",
        "list_claimed_jobs",
        "List claimed jobs",
        "List the jobs that are claimed now, before you choose work. `prefix` filters by name; `nextCursor` leads to "
        "the next page.",
        is_read_only=True,
    ),
    Tool(
        "reserve_files",
        "reserve_files",
        "Reserve files",
        "Reserve the files that you are going to change, before you change them, in a repository that other agents "
        "change too: all of them in one call, as few as you need. Status `reserved`: keep `reservation_id` and "
        "`lease_id`, renew with heartbeat_files, and release after your commit. Status `held`: nothing was reserved; "
        "leave the files in `conflicts` alone and do other work, or ask again with `waitMs` to wait for them.",
    ),
    Tool(
        "heartbeat_files",
        "heartbeat_reservation",
        "Renew a reservation of files",
        "While you work on reserved files, renew the reservation every `heartbeat_every_seconds`. On `lease_lost`, "
        "stop changing the files at once: others may have reserved them.",
        is_idempotent=True,
    ),
    Tool(
        "release_files",
        "release_files",
        "Release files",
        "Release reserved files as soon as your changes are committed or given up; `paths` releases only some of them. "
        "`lease_lost` means that the reservation ended before: check your changes against those of others.",
        is_idempotent=True,
    ),
    Tool(
        "who_owns",
        "check_files",
        "Read who has reserved files",
        "Read for each file whether you may change it, and who has reserved it, without reserving anything: before you "
        "choose work, and before you commit. Send your `leaseIds`, so that your own reservations count as yours. If "
        "`allowed` is false, do not change the file; reserve_files with `waitMs` waits for it.",
        is_read_only=True,
    ),
    Tool(
        "create_task",
        "create_task",
        "Create a task",
        "Put a task into the queue of its type, for any worker to claim. Send an `idempotencyKey` so that a repeated "
        "call creates no second task, or a `uniqueKey` so that at most one unfinished task has that key. If the "
        "plan's limit is reached, tell your user instead of retrying.",
    ),
    Tool(
        "claim_task",
        "claim_task",
        "Claim the next task",
        "Claim the next task of some types when you are free to work; `waitMs` waits for one. Keep `leaseId` and read "
        "`previousAttempt`. `task: null` means that no task is ready: claim again later.",
    ),
    Tool(
        "heartbeat_task",
        "heartbeat",
        "Renew a task",
        "While you work on a task, renew it at least every third of `leaseDurationSeconds`, with a `checkpoint`. "
        "`cancelRequested: true` asks you to stop and release it. If it is refused as expired or superseded, stop at "
        "once: another worker may have the task.",
        is_idempotent=True,
    ),
    Tool(
        "complete_task",
        "complete_task",
        "Complete a task",
        "Complete a task with its `result`; this is final. If it is refused as expired or superseded, you no longer "
        "held the task: do not publish your result.",
        is_idempotent=True,
    ),
    Tool(
        "fail_task",
        "fail_task",
        "Fail a task",
        "Report that a task failed, with the `reason`; it is retried while it has attempts left. Send `permanent: "
        "true` only if retrying is pointless: the task then becomes a dead letter.",
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        "release_task",
        "release_task",
        "Release a task",
        "Return a task that you cannot do to its queue, with a `note`; the attempt is not counted. `delayMs` keeps it "
        "from being claimed again at once.",
        is_idempotent=True,
    ),
    Tool(
        "check_task_status",
        "check_task_status",
        "Read a task",
        "Read a task, with its result once it is completed. `waitMs` waits until it is finished, so that you need not "
        "poll.",
        is_read_only=True,
    ),
    Tool(
        "list_tasks",
        "list_tasks",
        "List tasks",
        "Find tasks by type, status, tag or worker, newest first. `nextCursor` leads to the next page.",
        is_read_only=True,
    ),
    Tool(
        "my_work",
        "list_mine",
        "List what you hold",
        "List the jobs, files and tasks that you hold, with checkpoints, notes and time left: after a restart, or when "
        "you no longer know what you claimed. `lease_id` is shown only to a caller that proves to be the session "
        "that claimed it. What is not listed you do not hold: claim it again before you go on with it.",
        is_read_only=True,
    ),
    Tool(
        "list_events",
        "list_events",
        "Read the event log",
        "Read what happened, in order: every claim, renewal, release, result and expiry is an event. Send "
        "`nextCursor` as `after` to continue, and `waitMs` to wait for the next event. After a call whose outcome you "
        "do not know, filter by `requestId`.",
        is_read_only=True,
    ),
    Tool(
        "resume_session",
        "begin_session",
        "Open or resume a session",
        "Open a session under a stable `name`, or resume it after a restart with its `secret`: you get back its "
        "context and everything it held, under new lease ids. Keep `secret` where you find it after a restart. If it "
        "is refused, a live session has this name: choose another.",
        is_destructive=True,
    ),
)

_OPERATIONS = {operation.name: operation for operation in OPERATIONS}


def operation_of(tool: Tool) -> Operation:
    """The operation that a tool calls."""
    return _OPERATIONS[tool.operation]
