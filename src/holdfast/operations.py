"""Every operation, once. Routes, documents and clients are made from this table, so that they cannot drift."""

from __future__ import annotations

import msgspec

OCTOSTORE, HOUSE, SYSTEM = "octostore", "house", "system"


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
