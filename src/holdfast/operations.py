"""Every operation, once. Routes, documents and clients are made from this table, so that they cannot drift."""

from __future__ import annotations

import msgspec

OCTOSTORE, ORCHESTRION, HOUSE, SYSTEM = "octostore", "orchestrion", "house", "system"


class Operation(msgspec.Struct, frozen=True):
    """One thing a caller can ask for. `{name}` in a path is one segment, `{job_id...}` is any number."""

    name: str
    method: str
    path: str
    family: str
    summary: str
    scope: str | None = None
    """What the caller's key must open; None for anybody."""


OPERATIONS = (
    Operation(
        "claim_job", "POST", "/v1/jobs/{job_id...}/claim", HOUSE, "Own a job if nobody does, or learn who does.", "jobs"
    ),
    Operation(
        "heartbeat_job",
        "POST",
        "/v1/jobs/{job_id...}/heartbeat",
        HOUSE,
        "Still at work: renew, and leave a checkpoint.",
        "jobs",
    ),
    Operation(
        "release_job", "POST", "/v1/jobs/{job_id...}/release", HOUSE, "Done with it: let the next one have it.", "jobs"
    ),
    Operation(
        "force_release_job", "POST", "/v1/jobs/{job_id...}/force-release", HOUSE, "Take a job from its holder.", "admin"
    ),
    Operation(
        "get_job_owner",
        "GET",
        "/v1/jobs/{job_id...}",
        HOUSE,
        "Who owns a job, or how its last ownership ended.",
        "jobs",
    ),
    Operation("list_claimed_jobs", "GET", "/v1/jobs", HOUSE, "Jobs that somebody owns right now.", "jobs"),
    *(
        Operation(name, method, path, ORCHESTRION, summary, scope)
        for name, method, path, summary, scope in (
            ("register", "POST", "/v1/keys/register", "Get an account and its first key.", None),
            ("create_task", "POST", "/v1/tasks", "Put work into its queue.", "tasks"),
            ("list_tasks", "GET", "/v1/tasks", "Tasks, newest first.", "tasks"),
            ("count_tasks", "GET", "/v1/tasks/counts", "How many tasks of each type are in each state.", "tasks"),
            ("batch_tasks", "POST", "/v1/tasks/batch", "Up to 1,000 verbs in one transaction.", "tasks"),
            ("claim_task", "POST", "/v1/tasks/claim", "Take the next task of some types.", "tasks"),
            (
                "check_task_status",
                "GET",
                "/v1/tasks/{id}",
                "A task as it is, or its result once there is one.",
                "tasks",
            ),
            ("claim_task_by_id", "POST", "/v1/tasks/{id}/claim", "Take this task.", "tasks"),
            ("heartbeat", "POST", "/v1/tasks/{id}/heartbeat", "Still at work: start the lease again.", "tasks"),
            ("complete_task", "POST", "/v1/tasks/{id}/complete", "Done, with its result.", "tasks"),
            ("fail_task", "POST", "/v1/tasks/{id}/fail", "It went wrong: retry later, or never.", "tasks"),
            ("release_task", "POST", "/v1/tasks/{id}/release", "Hand it back; the attempt is not counted.", "tasks"),
            ("snooze_task", "POST", "/v1/tasks/{id}/snooze", "Not now: hand it back for a while.", "tasks"),
            ("cancel_task", "POST", "/v1/tasks/{id}/cancel", "Nobody needs it any more.", "tasks"),
            ("requeue_task", "POST", "/v1/tasks/{id}/requeue", "Give a dead letter another life.", "tasks"),
            ("resolve_task", "POST", "/v1/tasks/{id}/resolve", "A dead letter has been dealt with.", "tasks"),
            ("task_events", "GET", "/v1/tasks/{id}/events", "Everything that happened to a task.", "tasks"),
            ("task_attempts", "GET", "/v1/tasks/{id}/attempts", "Who held a task, and how that went.", "tasks"),
            ("list_plans", "GET", "/v1/billing/plans", "What can be bought, and what it allows.", None),
            ("billing_status", "GET", "/v1/billing/status", "Your plan, its limits, and what is used of it.", "tasks"),
            ("checkout", "POST", "/v1/billing/checkout", "Ask for a plan; a person approves the payment.", "tasks"),
            ("verify_payment", "POST", "/v1/billing/verify", "The person has approved: activate the plan.", "tasks"),
        )
    ),
    *(
        Operation(name, method, path, HOUSE, summary, scope)
        for name, method, path, summary, scope in (
            ("recover", "POST", "/v1/recover", "End now whatever has run out.", "admin"),
            ("settle_account", "PATCH", "/v1/account", "Decide how your account is served.", "admin"),
            ("begin_session", "POST", "/v1/sessions", "Open a session by its name, or resume it.", "jobs"),
            ("list_sessions", "GET", "/v1/sessions", "Sessions with a name.", "jobs"),
            ("read_session", "GET", "/v1/sessions/{id}", "A session, its context and what it holds.", "jobs"),
            ("heartbeat_session", "POST", "/v1/sessions/{id}/heartbeat", "Renew it and all that it holds.", "jobs"),
            ("write_context", "POST", "/v1/sessions/{id}/context", "Write down what the next life must know.", "jobs"),
            ("close_session", "DELETE", "/v1/sessions/{id}", "End it and give everything back.", "jobs"),
            ("list_events", "GET", "/v1/events", "The log of the account, from a cursor on.", "jobs"),
        )
    ),
    Operation("list_locks", "GET", "/locks", OCTOSTORE, "Locks that somebody holds right now.", "jobs"),
    Operation("get_lock_status", "GET", "/locks/{name}", OCTOSTORE, "Who holds a lock.", "jobs"),
    Operation("acquire_lock", "POST", "/locks/{name}/acquire", OCTOSTORE, "Take a lock, or keep it.", "jobs"),
    Operation("renew_lock", "POST", "/locks/{name}/renew", OCTOSTORE, "Hold a lock for longer.", "jobs"),
    Operation("release_lock", "POST", "/locks/{name}/release", OCTOSTORE, "Let a lock go.", "jobs"),
    Operation("set_lock_acl", "PUT", "/locks/{name}/acl", OCTOSTORE, "Say who may take a lock.", "jobs"),
    Operation("open_session", "POST", "/sessions", OCTOSTORE, "Begin a session.", "jobs"),
    Operation("get_session", "GET", "/sessions/{id}", OCTOSTORE, "Whether a session lives.", "jobs"),
    Operation("end_session", "DELETE", "/sessions/{id}", OCTOSTORE, "End a session and free what it held.", "jobs"),
    Operation("keepalive_session", "POST", "/sessions/{id}/keepalive", OCTOSTORE, "Keep a session alive.", "jobs"),
    Operation("create_election", "POST", "/elections", OCTOSTORE, "Make a room for an election."),
    Operation("get_election_status", "GET", "/elections/{id}", OCTOSTORE, "Who leads."),
    Operation("campaign", "POST", "/elections/{id}/campaign", OCTOSTORE, "Lead if nobody does."),
    Operation("renew_leadership", "POST", "/elections/{id}/renew", OCTOSTORE, "Lead for longer."),
    Operation("resign", "POST", "/elections/{id}/resign", OCTOSTORE, "Stop leading."),
    Operation("index", "GET", "/", SYSTEM, "What this server answers."),
    Operation("health", "GET", "/health", SYSTEM, "Whether the server answers."),
    Operation("status", "GET", "/status", SYSTEM, "What the server has done so far."),
    Operation("healthz", "GET", "/healthz", SYSTEM, "Whether the process is alive."),
    Operation("readyz", "GET", "/readyz", SYSTEM, "Whether the store can be used."),
    Operation("version", "GET", "/version", SYSTEM, "Which Holdfast this is."),
)
