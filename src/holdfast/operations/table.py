"""The table of all operations. Routes, OpenAPI, MCP tools, documents and clients are generated from it."""

from __future__ import annotations

import msgspec

from holdfast.core.plan import CLAIM, CREATE, HEARTBEAT, MUTATION, READ

OCTOSTORE, ORCHESTRION, HOLDFAST_API, SYSTEM = "octostore", "orchestrion", "house", "system"
"""Families: routes compatible with OctoStore and Orchestrion, Holdfast's own, and probes and documents.

The family decides the form of errors. The values are the tags of the OpenAPI document.
"""

DISCOVERY, REGISTRATION = "discovery", "registration"
"""Rate limits by client address, for requests without a key."""


class Operation(msgspec.Struct, frozen=True):
    """One operation. `{name}` in a path is one segment, `{job_id...}` is one or more."""

    name: str
    method: str
    path: str
    family: str
    summary: str
    scope: str | None = None
    """Scopes of which the caller's key needs one, separated by spaces; None if no key is needed."""
    limit: str | None = None
    """The rate limit that it counts against."""


_WORKERS = "jobs tasks:work"
"""Scopes of clients that hold jobs or tasks."""
_JOBS = (
    ("claim_job", "POST", "/{job_id...}/claim", "Own a job if nobody does, or learn who does.", "jobs", CLAIM),
    (
        "heartbeat_job",
        "POST",
        "/{job_id...}/heartbeat",
        "Still at work: renew, and leave a checkpoint.",
        "jobs",
        HEARTBEAT,
    ),
    ("release_job", "POST", "/{job_id...}/release", "Done with it: let the next one have it.", "jobs", MUTATION),
    ("force_release_job", "POST", "/{job_id...}/force-release", "Take a job from its holder.", "admin", MUTATION),
    ("get_job_owner", "GET", "/{job_id...}", "Who owns a job, or how its last ownership ended.", "jobs:read", READ),
    ("list_claimed_jobs", "GET", "", "Jobs that somebody owns right now.", "jobs:read", READ),
)
_TASKS = (
    ("create_task", "POST", "", "Put work into its queue.", "tasks:produce", CREATE),
    ("list_tasks", "GET", "", "Tasks, newest first.", "tasks:read", READ),
    ("count_tasks", "GET", "/counts", "How many tasks of each type are in each state.", "tasks:read", READ),
    ("batch_tasks", "POST", "/batch", "Up to 1,000 verbs in one transaction.", "tasks:produce tasks:work", None),
    ("claim_task", "POST", "/claim", "Take the next task of some types.", "tasks:work", CLAIM),
    ("check_task_status", "GET", "/{id}", "A task as it is, or its result once there is one.", "tasks:read", READ),
    ("claim_task_by_id", "POST", "/{id}/claim", "Take this task.", "tasks:work", CLAIM),
    ("heartbeat", "POST", "/{id}/heartbeat", "Still at work: start the lease again.", "tasks:work", HEARTBEAT),
    ("complete_task", "POST", "/{id}/complete", "Done, with its result.", "tasks:work", MUTATION),
    ("fail_task", "POST", "/{id}/fail", "It went wrong: retry later, or never.", "tasks:work", MUTATION),
    ("release_task", "POST", "/{id}/release", "Hand it back; the attempt is not counted.", "tasks:work", MUTATION),
    ("snooze_task", "POST", "/{id}/snooze", "Not now: hand it back for a while.", "tasks:work", MUTATION),
    ("cancel_task", "POST", "/{id}/cancel", "Nobody needs it any more.", "tasks:produce", MUTATION),
    ("requeue_task", "POST", "/{id}/requeue", "Give a dead letter another life.", "tasks:produce", MUTATION),
    ("resolve_task", "POST", "/{id}/resolve", "A dead letter has been dealt with.", "tasks:produce", MUTATION),
    ("task_events", "GET", "/{id}/events", "Everything that happened to a task.", "tasks:read", READ),
    ("task_attempts", "GET", "/{id}/attempts", "Who held a task, and how that went.", "tasks:read", READ),
)
_BUYERS = "tasks:produce tasks:work"
"""Scopes of clients that may reach a limit of the plan."""
_BILLING = (
    ("list_plans", "GET", "/plans", "What can be bought, and what it allows.", None, DISCOVERY),
    ("billing_status", "GET", "/status", "Your plan, its limits, and what is used of it.", "any", READ),
    ("checkout", "POST", "/checkout", "Ask for a plan; a person approves the payment.", _BUYERS, MUTATION),
    ("verify_payment", "POST", "/verify", "The person has approved: activate the plan.", _BUYERS, MUTATION),
)
_KEYS = (
    ("list_keys", "GET", "/v1/keys", "The account's keys, without their secrets.", "admin", READ),
    ("create_key", "POST", "/v1/keys", "A new key, shown this once.", "admin", MUTATION),
    (
        "rotate_own_key",
        "POST",
        "/v1/keys/rotate",
        "A new key for the caller; the old one works a while.",
        "any",
        MUTATION,
    ),
    ("read_key", "GET", "/v1/keys/{id}", "One key, and when it was last used.", "admin", READ),
    (
        "rotate_key",
        "POST",
        "/v1/keys/{id}/rotate",
        "A new secret for a key; the old one works a while.",
        "admin",
        MUTATION,
    ),
    ("revoke_key", "DELETE", "/v1/keys/{id}", "A key stops working.", "admin", MUTATION),
    ("read_account", "GET", "/v1/account", "The plan, what is used of it, and when it starts anew.", "any", READ),
    (
        "link_dashboard",
        "POST",
        "/v1/account/dashboard-link",
        "A link that signs a browser in at the dashboard, once.",
        "any",
        MUTATION,
    ),
    ("export_account", "GET", "/v1/account/export", "Everything the account has, a page at a time.", "admin", READ),
    ("delete_account", "DELETE", "/v1/account", "Erase the account and all it has, for good.", "admin", MUTATION),
    ("settle_account", "PATCH", "/v1/account", "Decide how your account is served.", "admin", MUTATION),
    ("recover", "POST", "/v1/recover", "End now whatever has run out.", "admin", MUTATION),
)
_SESSIONS = (
    ("begin_session", "POST", "", "Open a session by its name, or resume it.", _WORKERS, MUTATION),
    ("list_sessions", "GET", "", "Sessions with a name.", "jobs:read tasks:read", READ),
    ("read_session", "GET", "/{id}", "A session, its context and what it holds.", "jobs:read tasks:read", READ),
    ("heartbeat_session", "POST", "/{id}/heartbeat", "Renew it and all that it holds.", _WORKERS, HEARTBEAT),
    ("write_context", "POST", "/{id}/context", "Write down what the next life must know.", _WORKERS, MUTATION),
    ("close_session", "DELETE", "/{id}", "End it and give everything back.", _WORKERS, MUTATION),
)
_WEBHOOKS = (
    ("create_webhook", "POST", "", "Be told of what happens, at an address of yours.", "admin", MUTATION),
    ("list_webhooks", "GET", "", "The account's webhooks, without their secrets.", "admin", READ),
    ("read_webhook", "GET", "/{id}", "One webhook, and how its deliveries stand.", "admin", READ),
    ("update_webhook", "PATCH", "/{id}", "Change its address or what it is told of; pause it.", "admin", MUTATION),
    ("delete_webhook", "DELETE", "/{id}", "Nobody wants to be told any more.", "admin", MUTATION),
    ("rotate_webhook_secret", "POST", "/{id}/rotate", "A new secret; the old one signs on a while.", "admin", MUTATION),
    ("test_webhook", "POST", "/{id}/test", "Send a message that tells of nothing.", "admin", MUTATION),
    ("list_deliveries", "GET", "/{id}/deliveries", "What was sent, what waits, what nobody took.", "admin", READ),
    ("replay_deliveries", "POST", "/{id}/replay", "Send again what did not arrive.", "admin", MUTATION),
)
_OCTOSTORE = (
    ("list_locks", "GET", "/locks", "Locks that somebody holds right now.", "jobs:read"),
    ("get_lock_status", "GET", "/locks/{name}", "Who holds a lock.", "jobs:read"),
    ("acquire_lock", "POST", "/locks/{name}/acquire", "Take a lock, or keep it.", "jobs"),
    ("renew_lock", "POST", "/locks/{name}/renew", "Hold a lock for longer.", "jobs"),
    ("release_lock", "POST", "/locks/{name}/release", "Let a lock go.", "jobs"),
    ("set_lock_acl", "PUT", "/locks/{name}/acl", "Say who may take a lock.", "jobs"),
    ("watch_lock", "GET", "/locks/{name}/watch", "Who holds a lock, as it changes.", "jobs:read"),
    ("open_session", "POST", "/sessions", "Begin a session.", "jobs"),
    ("get_session", "GET", "/sessions/{id}", "Whether a session lives.", "jobs:read"),
    ("end_session", "DELETE", "/sessions/{id}", "End a session and free what it held.", "jobs"),
    ("keepalive_session", "POST", "/sessions/{id}/keepalive", "Keep a session alive.", "jobs"),
    ("create_election", "POST", "/elections", "Make a room for an election.", None),
    ("get_election_status", "GET", "/elections/{id}", "Who leads.", None),
    ("watch_election", "GET", "/elections/{id}/watch", "Who leads, as it changes.", None),
    ("campaign", "POST", "/elections/{id}/campaign", "Lead if nobody does.", None),
    ("renew_leadership", "POST", "/elections/{id}/renew", "Lead for longer.", None),
    ("resign", "POST", "/elections/{id}/resign", "Stop leading.", None),
    ("create_lock_webhook", "POST", "/webhooks", "Be told of your own locks.", "jobs"),
    ("list_lock_webhooks", "GET", "/webhooks", "The webhooks of your own locks.", "jobs:read"),
    ("delete_lock_webhook", "DELETE", "/webhooks/{id}", "A webhook of your own locks goes.", "jobs"),
    ("register_user", "POST", "/auth/register", "Get a token under a name of your own.", None),
    ("rotate_token", "POST", "/auth/token/rotate", "A new token; the old one is over at once.", "any"),
)
_SYSTEM = (
    ("index", "GET", "/", "What this server answers.", None),
    ("health", "GET", "/health", "Whether the server answers.", None),
    ("status", "GET", "/status", "What the server has done so far.", None),
    ("healthz", "GET", "/healthz", "Whether the process is alive.", None),
    ("readyz", "GET", "/readyz", "Whether the store can be used.", None),
    ("version", "GET", "/version", "Which Holdfast this is.", None),
    ("docs", "GET", "/docs", "The routes as a page for people.", None),
    ("admin_status", "GET", "/admin/status", "Who holds what, and who has a key.", "admin"),
    ("metrics", "GET", "/metrics", "How busy the server is.", "admin"),
    ("prometheus", "GET", "/metrics/prometheus", "The same for a scraper.", "admin"),
    ("metrics_history", "GET", "/admin/metrics/timeseries", "How busy it was, minute by minute.", "admin"),
)
_DOCUMENTS = (
    ("agent_json", "/.well-known/agent.json", "Where an agent that knows only the address begins."),
    ("agent_card", "/.well-known/agent-card.json", "The same as an A2A agent card."),
    ("capabilities", "/v1/capabilities", "States, limits, errors, actions and plans, for programs."),
    ("tool", "/v1/tool", "Every operation as a tool with its input schema."),
    ("schema", "/v1/schema", "The same as `/openapi.json`, where clients of Orchestrion look."),
    ("openapi_json", "/openapi.json", "Every operation, as OpenAPI 3.1."),
    ("openapi_yaml", "/openapi.yaml", "The same in YAML."),
    ("llms_txt", "/llms.txt", "What there is to read, for language models."),
    ("agents_md", "/AGENTS.md", "How an agent works with this server."),
    ("skill_md", "/skill/SKILL.md", "The same as a skill."),
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
    Operation(
        "register",
        "POST",
        "/v1/keys/register",
        ORCHESTRION,
        "Get an account and its first key.",
        limit=REGISTRATION,
    ),
    *_under("/v1/tasks", ORCHESTRION, _TASKS),
    *_under("/v1/billing", ORCHESTRION, _BILLING),
    *_under("", HOLDFAST_API, _KEYS),
    *_under("/v1/sessions", HOLDFAST_API, _SESSIONS),
    *_under("/v1/webhooks", HOLDFAST_API, _WEBHOOKS),
    Operation(
        "list_events",
        "GET",
        "/v1/events",
        HOLDFAST_API,
        "The log of the account, from a cursor on.",
        "jobs tasks read",
        READ,
    ),
    *(Operation(name, method, path, OCTOSTORE, summary, scope) for name, method, path, summary, scope in _OCTOSTORE),
    *(Operation(name, method, path, SYSTEM, summary, scope) for name, method, path, summary, scope in _SYSTEM),
    *(Operation(name, "GET", path, SYSTEM, summary, limit=DISCOVERY) for name, path, summary in _DOCUMENTS),
)
