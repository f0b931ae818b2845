"""The tools that every client gets, in the order of the list.

Descriptions state when to use a tool and what a refusal means.
"""

from __future__ import annotations

from holdfast.transport.mcp.tool import Call, Tool, only

_ECHO = frozenset({"payload", "checkpoint", "progress"})
"""What the holder of a task has read when it claimed it, or has just sent."""
_ROW = frozenset({"payload", "result", "checkpoint", "progress", "metadata", "backoff", "previousAttempt"})
"""What a list leaves out of its rows."""
_OF_SESSION = frozenset({*_ECHO, "context"})
_ID_OF_RESERVATION = {"id": "reservationId"}
_ID_OF_SESSION = {"id": "sessionId"}
_IF_LIVE = {"if_live": "refuse"}
"""A model that resumes its session is told first if its former process still runs."""

JOB_TOOLS = (
    Tool(
        "claim_job",
        (
            Call(
                "claim_any_job",
                given="alternatives",
                names={"any_of": "alternatives"},
                first={"any_of": "jobId"},
            ),
            Call("claim_job"),
        ),
        "Claim a job",
        "Claim a job before you start work that other agents might also start (an issue, a deployment, a migration); "
        "choose a name that all of them would choose. Status `claimed`: you hold the job in `job_id`; keep `lease_id`, "
        "read `previous` and send heartbeats. Status `held`: another worker holds it; take other work, or claim again "
        "with `waitMs` to wait in its queue; status `done`: it is done already, use `result`.",
    ),
    Tool(
        "heartbeat_job",
        only("heartbeat_job", frozenset({"checkpoint", "progress"})),
        "Renew a job",
        "While you work on a job, renew it every `heartbeat_every_seconds` and leave a `checkpoint` and a `note` for "
        "a successor. On `lease_lost`, stop at once and publish nothing: you no longer hold the job.",
        is_idempotent=True,
    ),
    Tool(
        "release_job",
        only("release_job"),
        "Release a job",
        "Release a job: with `outcome` `done` and a `result` if the work is done, so that nobody does it again; with "
        "`failed` or `free` and a `note` for the next owner if you give up. `lease_lost` means that you no "
        "longer held it: your last changes may conflict with the work of the new owner.",
        is_idempotent=True,
    ),
    Tool(
        "get_job_owner",
        only("get_job_owner"),
        "Read the owner of a job",
        "Read who owns a job and its progress, or how its last lease ended, without claiming it.",
        is_read_only=True,
    ),
    Tool(
        "list_claimed_jobs",
        only("list_claimed_jobs", _ROW),
        "List claimed jobs",
        "List the jobs that are claimed now, before you choose work. `prefix` filters by name; `nextCursor` leads to "
        "the next page; get_job_owner shows one of them whole.",
        is_read_only=True,
        summarises="jobs",
    ),
)

FILE_TOOLS = (
    Tool(
        "reserve_files",
        (
            Call("extend_reservation", given="reservationId", names=_ID_OF_RESERVATION),
            Call("reserve_files"),
        ),
        "Reserve files",
        "Reserve the files that you are going to change, before you change them, in a repository that other agents "
        "change too: all of them in one call, as few as you need; `reservationId` and `leaseId` add files to what you "
        "have. Status `reserved`: keep `reservation_id` and `lease_id`, renew with heartbeat, and release after your "
        "commit. Status `held`: nothing was reserved; leave the files in `conflicts` alone and do other work, or ask "
        "again with `waitMs` to wait for them.",
    ),
    Tool(
        "release_files",
        only("release_files", id="reservationId"),
        "Release files",
        "Release reserved files as soon as your changes are committed or given up; `paths` releases only some of them. "
        "`lease_lost` means that the reservation ended before: check your changes against those of others.",
        is_idempotent=True,
    ),
    Tool(
        "who_owns",
        (
            Call("read_reservation", given="reservationId", names=_ID_OF_RESERVATION),
            Call("check_files", given="paths"),
            Call("list_reservations"),
        ),
        "Read who has reserved files",
        "Read for each of `paths` whether you may change it, and who has reserved it, before you choose work and "
        "before you commit; send your `leaseIds`, so that your own reservations count as yours. If `allowed` is false, "
        "do not change the file; reserve_files with `waitMs` waits for it. Without `paths` it lists all reservations, "
        "with `reservationId` it reads one.",
        is_read_only=True,
        summarises="reservations",
    ),
)

TASK_TOOLS = (
    Tool(
        "create_task",
        only("create_task", _ECHO),
        "Create a task",
        "Put a task into the queue of its type, for any worker to claim. Send an `idempotencyKey` so that a repeated "
        "call creates no second task, or a `uniqueKey` so that at most one unfinished task has that key. If the "
        "plan's limit is reached, tell your user instead of retrying.",
    ),
    Tool(
        "claim_task",
        (Call("claim_task_by_id", given="id"), Call("claim_task")),
        "Claim the next task",
        "Claim the next task of some types when you are free to work, or the one with `id`; `waitMs` waits for one. "
        "Keep `leaseId`, work on `payload`, which is shown only now and by check_task_status, and read "
        "`previousAttempt`. `task: null` means that no task is ready: claim again later.",
    ),
    Tool(
        "heartbeat",
        (Call("heartbeat_reservation", uuid="id"), Call("heartbeat", omits=_ECHO)),
        "Renew a task or a reservation",
        "While you work on a task or on reserved files, renew it: a task at least every third of "
        "`leaseDurationSeconds`, with a `checkpoint`; a reservation every `heartbeat_every_seconds`. "
        "`cancelRequested: true` asks you to stop and release the task. If it is refused as lost, expired or "
        "superseded, stop at once: others may have it.",
        is_idempotent=True,
    ),
    Tool(
        "complete_task",
        only("complete_task", _ECHO),
        "Complete a task",
        "Complete a task with its `result`; this is final. If it is refused as expired or superseded, you no longer "
        "held the task: do not publish your result.",
        is_idempotent=True,
    ),
    Tool(
        "fail_task",
        only("fail_task", _ECHO),
        "Fail a task",
        "Report that a task failed, with the `reason`; it is retried while it has attempts left. Send `permanent: "
        "true` only if retrying is pointless: the task then becomes a dead letter.",
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        "release_task",
        only("release_task", _ECHO),
        "Release a task",
        "Return a task that you cannot do to its queue, with a `note`; the attempt is not counted. `delayMs` keeps it "
        "from being claimed again at once.",
        is_idempotent=True,
    ),
    Tool(
        "ask_human",
        only("ask_task", _ECHO),
        "Ask a person",
        "Ask a person when your task needs a decision or knowledge that you do not have; leave a `checkpoint` of what "
        "is done. The task waits for the answer and you no longer hold it: take other work. Once it is "
        "answered, whoever claims the task gets `answered` and the checkpoint.",
    ),
    Tool(
        "check_task_status",
        only("check_task_status"),
        "Read a task",
        "Read a task, with its result once it is completed. `waitMs` waits until it is finished, so that you need not "
        "poll.",
        is_read_only=True,
    ),
    Tool(
        "list_tasks",
        only("list_tasks", _ROW),
        "List tasks",
        "Find tasks by type, status, tag or worker, newest first. `nextCursor` leads to the next page; "
        "check_task_status shows one of them whole.",
        is_read_only=True,
        summarises="tasks",
    ),
    Tool(
        "requeue_task",
        only("requeue_task", _ECHO),
        "Requeue a dead letter",
        "Put a task with the status `dead_letter` back into its queue, once the cause of its failure is fixed.",
        is_idempotent=True,
    ),
)

SESSION_TOOLS = (
    Tool(
        "my_work",
        only("list_mine"),
        "List what you hold",
        "List the jobs, files and tasks that you hold, with checkpoints, notes and time left: after a restart, or when "
        "you no longer know what you claimed. `lease_id` is shown only to a caller that proves to be the session "
        "that claimed it. What is not listed you do not hold: claim it again before you go on with it.",
        is_read_only=True,
        summarises="held",
        is_whole=True,
    ),
    Tool(
        "session",
        (
            Call("begin_session", action="open", fixed=_IF_LIVE),
            Call("begin_session", action="resume", fixed=_IF_LIVE),
            Call("heartbeat_session", action="heartbeat", names=_ID_OF_SESSION, omits=_OF_SESSION),
            Call("write_context", action="context", names=_ID_OF_SESSION, omits=_OF_SESSION),
            Call("read_session", action="read", names=_ID_OF_SESSION),
            Call("close_session", action="close", names=_ID_OF_SESSION, omits=_OF_SESSION),
        ),
        "Open, renew, resume or close a session",
        "A session keeps your context and what you claimed with its `sessionId` across a restart: `open` it under a "
        "stable `name` and keep `secret` and `lease_id`; after a restart, `resume` it with `name` and `secret`, and "
        "you get its context and everything it held, under new lease ids. `heartbeat` renews it and all it holds, "
        "`context` saves what you need when you resume, `read` shows it, `close` ends it and releases all it holds: "
        "each takes `sessionId`, and all but `read` its `leaseId`. `session_live` means that your former process may "
        "still run; `session_taken` that another agent has this name: choose another.",
        is_destructive=True,
    ),
)

DEFAULT_TOOLS = (*JOB_TOOLS, *FILE_TOOLS, *TASK_TOOLS, *SESSION_TOOLS)
