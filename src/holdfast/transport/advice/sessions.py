"""`agent_contract` of sessions: those of `/v1/sessions`, which can be resumed by name, and OctoStore's."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, contract


def active(session_id: str) -> Contract:
    """The session is live."""
    return contract(
        action("heartbeat_session", session_id, best=True, why="Renews the session and everything it holds."),
        action("write_context", session_id, why="Save what you need to know when you resume."),
        action("claim_task", why="With this session_id, and its lease_id as session_lease_id."),
        action("claim_job", why="With this session_id, and its lease_id as session_lease_id."),
    )


def ended(session_id: str) -> Contract:
    """The session has ended; its context is kept until it is resumed."""
    return contract(
        action(
            "resume_session",
            operation="begin_session",
            best=True,
            why="With the same name, and its secret if you have it.",
        ),
        action("read_session", session_id),
    )


def listed() -> Contract:
    """Sessions were listed."""
    return contract(action("begin_session", best=True))


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
