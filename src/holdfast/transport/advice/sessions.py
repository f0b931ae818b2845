"""`agent_contract` of sessions: those of `/v1/sessions`, which can be resumed by name, and OctoStore's."""

from __future__ import annotations

from holdfast.transport.advice.contract import Action, Contract, action, continue_work, contract, work_over

LIVE_WAIT = 30
"""Seconds after which to resume again when the session was still live."""


def active(session_id: str) -> Contract:
    """The session is live."""
    return contract(
        action("heartbeat_session", session_id, best=True, why="Renews the session and everything it holds."),
        action("write_context", session_id, why="Save what you need to know when you resume."),
        action("claim_task", why="With this session_id, and its lease_id as session_lease_id."),
        action("claim_job", why="With this session_id, and its lease_id as session_lease_id."),
    )


def ended(session_id: str) -> Contract:
    """A session was read that has ended, or was closed; its context is kept until it is resumed."""
    return work_over("The session has ended, and holds nothing.", _resume(), action("read_session", session_id))


def expired() -> Contract:
    """The caller's session has expired."""
    return contract(_resume(best=True), action("list_sessions"))


def context_changed(session_id: str) -> Contract:
    """The context was written by another process since the caller read it."""
    why = "Read the context as it is now; then write yours with its `context_version` as `if_version`."
    return contract(action("read_session", session_id, best=True, why=why))


def missing() -> Contract:
    """There is no such session of the caller."""
    why = "Open a session, with a name of your own, and use its `session_id`."
    return contract(action("begin_session", best=True, why=why), action("list_sessions"))


def live() -> Contract:
    """The caller's own session is live, and it asked not to take it over from a process that may still run."""
    return contract(
        action(
            "retry_after_wait",
            operation="begin_session",
            best=True,
            wait=LIVE_WAIT,
            why="Stop your former process if it still runs; without it the session ends at `expires_at`.",
        ),
        action(
            "resume_session",
            operation="begin_session",
            why="With `if_live` `fence`: you get new lease ids, and the old ones end at once.",
        ),
        retryable=True,
    )


def listed() -> Contract:
    """Sessions were listed."""
    return continue_work("These are the sessions.", action("begin_session", why="If you need one of your own."))


def _resume(*, best: bool = False) -> Action:
    why = "With the same name, and its secret if you have it."
    return action("resume_session", operation="begin_session", best=best, why=why)


def octostore_active(session_id: str) -> Contract:
    """An OctoStore session is live."""
    return contract(
        action("keepalive_session", session_id, best=True),
        action("acquire_lock"),
        action("claim_job", why="With this session_id: the job is released when the session ends."),
    )


def octostore_ended() -> Contract:
    """An OctoStore session has expired."""
    return contract(action("open_session", best=True))
