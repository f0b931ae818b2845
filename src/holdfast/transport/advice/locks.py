"""`agent_contract` of OctoStore's locks."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, continue_work, contract


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


def acl_set(name: str) -> Contract:
    """The access list of a lock was replaced."""
    return continue_work("The access list is set.", action("get_lock_status", name), action("acquire_lock", name))


def listed() -> Contract:
    """Locks, webhooks or counts were listed."""
    return continue_work("That is the whole answer.", action("get_lock_status"))


def token_issued() -> Contract:
    """The caller received a token and can acquire locks."""
    return continue_work("Keep the token and send it with every request.", action("acquire_lock"))
