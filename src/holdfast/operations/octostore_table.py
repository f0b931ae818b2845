"""The operations of OctoStore's API: name, method, path, summary and scope."""

from __future__ import annotations

OCTOSTORE_ROWS: tuple[tuple[str, str, str, str, str | None], ...] = (
    ("list_locks", "GET", "/locks", "List the locks that are held now.", "jobs:read"),
    ("get_lock_status", "GET", "/locks/{name}", "Read the status and holder of a lock.", "jobs:read"),
    ("acquire_lock", "POST", "/locks/{name}/acquire", "Acquire a lock, or extend it if the caller holds it.", "jobs"),
    ("renew_lock", "POST", "/locks/{name}/renew", "Renew a lock.", "jobs"),
    ("release_lock", "POST", "/locks/{name}/release", "Release a lock.", "jobs"),
    ("set_lock_acl", "PUT", "/locks/{name}/acl", "Set who may acquire a lock.", "jobs"),
    ("watch_lock", "GET", "/locks/{name}/watch", "Watch the status of a lock.", "jobs:read"),
    ("open_session", "POST", "/sessions", "Open a session, to which locks can be bound.", "jobs"),
    ("get_session", "GET", "/sessions/{id}", "Read whether a session is active.", "jobs:read"),
    ("end_session", "DELETE", "/sessions/{id}", "End a session and release its locks.", "jobs"),
    ("keepalive_session", "POST", "/sessions/{id}/keepalive", "Renew a session.", "jobs"),
    ("create_election", "POST", "/elections", "Create an election.", None),
    ("get_election_status", "GET", "/elections/{id}", "Read the leader of an election.", None),
    ("watch_election", "GET", "/elections/{id}/watch", "Watch the status of an election.", None),
    ("campaign", "POST", "/elections/{id}/campaign", "Become the leader if there is none.", None),
    ("renew_leadership", "POST", "/elections/{id}/renew", "Renew the leadership.", None),
    ("resign", "POST", "/elections/{id}/resign", "Give up the leadership.", None),
    ("create_lock_webhook", "POST", "/webhooks", "Create a webhook for the caller's locks.", "jobs"),
    ("list_lock_webhooks", "GET", "/webhooks", "List the webhooks for the caller's locks.", "jobs:read"),
    ("delete_lock_webhook", "DELETE", "/webhooks/{id}", "Delete a webhook for the caller's locks.", "jobs"),
    ("register_user", "POST", "/auth/register", "Register a user name.", None),
    ("rotate_token", "POST", "/auth/token/rotate", "Replace the user's token.", "any"),
)
