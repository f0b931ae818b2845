"""The table of all operations. Routes, OpenAPI and MCP schemas are made from it; tests compare the client with it."""

from __future__ import annotations

from holdfast.core.plan import CLAIM, CREATE, HEARTBEAT, MUTATION, READ
from holdfast.operations.bounds import BATCH_ITEMS, HEARTBEAT_LEASES
from holdfast.operations.octostore_table import OCTOSTORE_ROWS
from holdfast.operations.operation import (
    DISCOVERY,
    HOLDFAST_API,
    OCTOSTORE,
    ORCHESTRION,
    REGISTRATION,
    SYSTEM,
    Operation,
)
from holdfast.operations.prefix_rules import PREFIX_RULES
from holdfast.operations.system_rows import DOCUMENT_ROWS, SYSTEM_ROWS

_WORKERS = "jobs tasks:work"
"""Scopes of clients that hold jobs or tasks."""
_JOBS = (
    ("claim_job", "POST", "/{job_id...}/claim", "Claim a job, or read its owner if it is held.", "jobs", CLAIM),
    ("claim_any_job", "POST", "/claim", "Claim the first of several jobs that is free.", "jobs", CLAIM),
    ("heartbeat_job", "POST", "/{job_id...}/heartbeat", "Renew a job's lease.", "jobs", HEARTBEAT),
    ("release_job", "POST", "/{job_id...}/release", "Release a job.", "jobs", MUTATION),
    ("offer_job", "POST", "/{job_id...}/offer", "Offer a job to a worker that gets its code.", "jobs", MUTATION),
    ("withdraw_job_offer", "POST", "/{job_id...}/withdraw-offer", "Withdraw the offer of a job.", "jobs", MUTATION),
    (
        "force_release_job",
        "POST",
        "/{job_id...}/force-release",
        "Release a job that another worker holds.",
        "admin",
        MUTATION,
    ),
    (
        "get_job_owner",
        "GET",
        "/{job_id...}",
        "Read the owner of a job, or how its last ownership ended.",
        "jobs:read",
        READ,
    ),
    ("list_claimed_jobs", "GET", "", "List the jobs that are held now.", "jobs:read", READ),
)
_RESERVATIONS = (
    ("reserve_files", "POST", "", "Reserve files of a repository, all or none.", "jobs", CLAIM),
    ("list_reservations", "GET", "", "List the reservations, also of one path or owner.", "jobs:read", READ),
    ("check_files", "POST", "/check", "Read which files of a repository the caller may change.", "jobs:read", READ),
    ("read_reservation", "GET", "/{id}", "Read a reservation, or how it ended.", "jobs:read", READ),
    ("heartbeat_reservation", "POST", "/{id}/heartbeat", "Renew a reservation.", "jobs", HEARTBEAT),
    ("release_files", "POST", "/{id}/release", "Release all files of a reservation, or some.", "jobs", MUTATION),
    ("extend_reservation", "POST", "/{id}/extend", "Add files to a reservation, all or none.", "jobs", CLAIM),
    ("offer_reservation", "POST", "/{id}/offer", "Offer a reservation to who gets its code.", "jobs", MUTATION),
    (
        "withdraw_reservation_offer",
        "POST",
        "/{id}/withdraw-offer",
        "Withdraw the offer of a reservation.",
        "jobs",
        MUTATION,
    ),
    ("claim_reservation", "POST", "/{id}/claim", "Take over a reservation that was offered.", "jobs", CLAIM),
    (
        "force_release_reservation",
        "POST",
        "/{id}/force-release",
        "Release what another owner has reserved.",
        "admin",
        MUTATION,
    ),
)
_TASKS = (
    ("create_task", "POST", "", "Create a task in the queue of its type.", "tasks:produce", CREATE),
    ("list_tasks", "GET", "", "List tasks, newest first.", "tasks:read", READ),
    ("count_tasks", "GET", "/counts", "Count the tasks by type and state.", "tasks:read", READ),
    (
        "batch_tasks",
        "POST",
        "/batch",
        f"Apply up to {BATCH_ITEMS.most:,} task operations in one transaction.",
        "tasks:produce tasks:work",
        None,
    ),
    ("claim_task", "POST", "/claim", "Claim the next task of some types.", "tasks:work", CLAIM),
    ("check_task_status", "GET", "/{id}", "Read a task.", "tasks:read", READ),
    ("claim_task_by_id", "POST", "/{id}/claim", "Claim a task by its id.", "tasks:work", CLAIM),
    ("heartbeat", "POST", "/{id}/heartbeat", "Renew the lease of a task.", "tasks:work", HEARTBEAT),
    ("complete_task", "POST", "/{id}/complete", "Complete a task with its result.", "tasks:work", MUTATION),
    ("fail_task", "POST", "/{id}/fail", "Fail the current attempt at a task.", "tasks:work", MUTATION),
    ("release_task", "POST", "/{id}/release", "Return a task to its queue.", "tasks:work", MUTATION),
    ("snooze_task", "POST", "/{id}/snooze", "Return a task to its queue until later.", "tasks:work", MUTATION),
    ("offer_task", "POST", "/{id}/offer", "Offer a task to a worker that gets its code.", "tasks:work", MUTATION),
    ("ask_task", "POST", "/{id}/ask", "Ask a person about a task, which waits for the answer.", "tasks:work", MUTATION),
    ("withdraw_task_offer", "POST", "/{id}/withdraw-offer", "Withdraw the offer of a task.", "tasks:work", MUTATION),
    ("cancel_task", "POST", "/{id}/cancel", "Cancel a task.", "tasks:produce", MUTATION),
    ("requeue_task", "POST", "/{id}/requeue", "Put a dead letter back into its queue.", "tasks:produce", MUTATION),
    ("resolve_task", "POST", "/{id}/resolve", "Mark a dead letter as resolved.", "tasks:produce", MUTATION),
    ("task_events", "GET", "/{id}/events", "Read the events of a task.", "tasks:read", READ),
    ("task_attempts", "GET", "/{id}/attempts", "Read the attempts of a task.", "tasks:read", READ),
    (
        "task_dependencies",
        "GET",
        "/{id}/dependencies",
        "Read what a task needs and what needs it.",
        "tasks:read",
        READ,
    ),
)
_QUESTIONS = (
    ("list_questions", "GET", "", "List the questions to people, open ones first.", "tasks:read answer", READ),
    ("read_question", "GET", "/{id}", "Read a question and its answer.", "tasks:read answer", READ),
    ("answer_question", "POST", "/{id}/answer", "Answer a question, or approve a task.", "answer", MUTATION),
)
_BUYERS = "tasks:produce tasks:work"
"""Scopes of clients that may reach a limit of the plan."""
_BILLING = (
    ("list_plans", "GET", "/plans", "List the plans with their prices and limits.", None, DISCOVERY),
    ("billing_status", "GET", "/status", "Read the account's plan, its limits and its usage.", "any", READ),
    ("checkout", "POST", "/checkout", "Start the purchase of a plan.", _BUYERS, MUTATION),
    ("verify_payment", "POST", "/verify", "Activate the plan after the payment was approved.", _BUYERS, MUTATION),
)
_KEYS = (
    ("list_keys", "GET", "/v1/keys", "List the account's keys, without their secrets.", "admin", READ),
    ("create_key", "POST", "/v1/keys", "Create a key, whose secret is shown only in this answer.", "admin", MUTATION),
    (
        "rotate_own_key",
        "POST",
        "/v1/keys/rotate",
        "Give the key of this request a new secret.",
        "any",
        MUTATION,
    ),
    ("read_key", "GET", "/v1/keys/{id}", "Read one key, and when it was last used.", "admin", READ),
    (
        "rotate_key",
        "POST",
        "/v1/keys/{id}/rotate",
        "Give a key a new secret.",
        "admin",
        MUTATION,
    ),
    ("revoke_key", "DELETE", "/v1/keys/{id}", "Revoke a key.", "admin", MUTATION),
    ("read_account", "GET", "/v1/account", "Read the account.", "any", READ),
    (
        "link_dashboard",
        "POST",
        "/v1/account/dashboard-link",
        "Create a link that signs one browser in to the dashboard.",
        "any",
        MUTATION,
    ),
    ("export_account", "GET", "/v1/account/export", "Read all data of the account, one page at a time.", "admin", READ),
    ("delete_account", "DELETE", "/v1/account", "Delete the account and all its data, permanently.", "admin", MUTATION),
    ("settle_account", "PATCH", "/v1/account", "Change the settings of the account.", "admin", MUTATION),
    (
        "recover",
        "POST",
        "/v1/recover",
        "End expired leases, tasks and sessions now, instead of at the next sweep.",
        "admin",
        MUTATION,
    ),
)
_SESSIONS = (
    ("begin_session", "POST", "", "Open a session by its name, or resume it after a restart.", _WORKERS, MUTATION),
    ("list_sessions", "GET", "", "List the sessions that have a name.", "jobs:read tasks:read", READ),
    ("read_session", "GET", "/{id}", "Read a session, its context and what it holds.", "jobs:read tasks:read", READ),
    ("heartbeat_session", "POST", "/{id}/heartbeat", "Renew a session and all it holds.", _WORKERS, HEARTBEAT),
    (
        "write_context",
        "POST",
        "/{id}/context",
        "Write the context that is returned when the session is resumed.",
        _WORKERS,
        MUTATION,
    ),
    ("close_session", "DELETE", "/{id}", "End a session and release all it holds.", _WORKERS, MUTATION),
)
_WEBHOOKS = (
    ("create_webhook", "POST", "", "Create a webhook, whose secret is shown only in this answer.", "admin", MUTATION),
    ("list_webhooks", "GET", "", "List the account's webhooks, without their secrets.", "admin", READ),
    ("read_webhook", "GET", "/{id}", "Read one webhook and the counts of its deliveries.", "admin", READ),
    ("update_webhook", "PATCH", "/{id}", "Change the URL or the filters of a webhook.", "admin", MUTATION),
    ("delete_webhook", "DELETE", "/{id}", "Delete a webhook.", "admin", MUTATION),
    ("rotate_webhook_secret", "POST", "/{id}/rotate", "Give a webhook a new secret.", "admin", MUTATION),
    ("test_webhook", "POST", "/{id}/test", "Send a test message.", "admin", MUTATION),
    ("list_deliveries", "GET", "/{id}/deliveries", "List deliveries.", "admin", READ),
    ("replay_deliveries", "POST", "/{id}/replay", "Send deliveries again.", "admin", MUTATION),
)
_QUEUES = (
    ("list_queues", "GET", "", "List the queues that have settings.", "tasks:read", READ),
    ("read_queue", "GET", "/{type}", "Read the settings of a queue and how many of its tasks run.", "tasks:read", READ),
    ("set_queue", "PUT", "/{type}", "Pause a queue, or limit how many of its tasks run.", "admin", MUTATION),
)


def _under(
    base: str, family: str, rows: tuple[tuple[str, str, str, str, str | None, str | None], ...]
) -> list[Operation]:
    return [
        Operation(name, method, base + path, family, summary, scope, limit)
        for name, method, path, summary, scope, limit in rows
    ]


OPERATIONS = (
    *_under("/v1/jobs", HOLDFAST_API, _JOBS),
    *_under("/v1/reservations", HOLDFAST_API, _RESERVATIONS),
    Operation(
        "heartbeat_leases",
        "POST",
        "/v1/heartbeats",
        HOLDFAST_API,
        f"Renew up to {HEARTBEAT_LEASES.most:,} leases of jobs, tasks and files in one transaction.",
        _WORKERS,
    ),
    Operation(
        "register",
        "POST",
        "/v1/keys/register",
        ORCHESTRION,
        "Create a separate account, which sees nothing of the others.",
        limit=REGISTRATION,
    ),
    *_under("/v1/tasks", ORCHESTRION, _TASKS),
    *_under("/v1/queues", HOLDFAST_API, _QUEUES),
    *_under("/v1/questions", HOLDFAST_API, _QUESTIONS),
    *_under("/v1/billing", ORCHESTRION, _BILLING),
    *_under("", HOLDFAST_API, _KEYS),
    *_under("/v1/sessions", HOLDFAST_API, _SESSIONS),
    *_under("/v1/webhooks", HOLDFAST_API, _WEBHOOKS),
    Operation("list_mine", "GET", "/v1/mine", HOLDFAST_API, "List what this key holds.", "jobs:read tasks:read", READ),
    Operation(
        "list_events",
        "GET",
        "/v1/events",
        HOLDFAST_API,
        "Read a page of the account's events after a sequence number.",
        "jobs tasks read",
        READ,
    ),
    *(
        Operation(name, method, path, OCTOSTORE, summary, scope)
        for name, method, path, summary, scope in OCTOSTORE_ROWS
    ),
    *(Operation(name, method, path, SYSTEM, summary, scope) for name, method, path, summary, scope in SYSTEM_ROWS),
    *(Operation(name, "GET", path, SYSTEM, summary, limit=DISCOVERY) for name, path, summary in DOCUMENT_ROWS),
)

OPERATIONS_BY_NAME = {operation.name: operation for operation in OPERATIONS}
assert OPERATIONS_BY_NAME.keys() <= PREFIX_RULES.keys(), "every operation needs a prefix rule"

HOLDER_OPERATIONS = frozenset(
    {
        *("heartbeat_job", "release_job", "renew_lock", "release_lock", "renew_leadership", "resign"),
        *("heartbeat_reservation", "release_files"),
        *("heartbeat", "complete_task", "fail_task", "release_task", "snooze_task", "ask_task"),
        *("offer_job", "withdraw_job_offer", "offer_task", "withdraw_task_offer"),
        *("offer_reservation", "withdraw_reservation_offer"),
        *("heartbeat_leases", "heartbeat_session", "close_session", "keepalive_session", "end_session"),
    }
)
"""By which a holder keeps, finishes or gives back what it holds: admitted even if there is no room for new work."""
PROBES = frozenset({"health", "healthz", "readyz", "version"})
"""By which others decide whether to restart this server: admitted even if it is overloaded."""
