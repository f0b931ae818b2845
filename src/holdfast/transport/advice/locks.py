"""`agent_contract` of OctoStore's locks."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, contract


def acquired(name: str) -> Contract:
    """The caller holds the lock."""
    return contract(action("renew_lock", name, best=True), action("release_lock", name))


def held(name: str, wait: int) -> Contract:
    """Another caller holds the lock, or its delay after the last holder is not over."""
    return contract(
        action("retry_after_wait", name, operation="acquire_lock", best=True, wait=wait),
        action("get_lock_status", name),
        retryable=True,
    )


def free(name: str) -> Contract:
    """The lock has no holder."""
    return contract(action("acquire_lock", name, best=True))


def listed() -> Contract:
    """Locks were listed."""
    return contract(action("get_lock_status", best=True))


def limit_reached() -> Contract:
    """The caller holds as many locks as it may."""
    return contract(action("release_lock", best=True))


def token_issued() -> Contract:
    """The caller received a token and can acquire locks."""
    return contract(action("acquire_lock", best=True))
