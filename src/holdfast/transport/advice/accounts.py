"""`agent_contract` of accounts and their keys: no work follows from these requests."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, continue_work, contract


def registered() -> Contract:
    """A new account: it has no tasks yet, so the first action is to create one. Orchestrion's clients expect this."""
    return contract(action("create_task", best=True), action("claim_task"))


def shown() -> Contract:
    """The account was read or changed."""
    return continue_work("The account is as shown.", action("list_mine", why="See what your key holds."))


def deleted() -> Contract:
    """The caller's account no longer exists."""
    return continue_work("The account is deleted, and its keys do not work any more.")


def exported() -> Contract:
    """The last page of the account's data was read."""
    return continue_work("That was the last page.", action("read_account"))


def recovered() -> Contract:
    """Expired leases were ended now."""
    return continue_work("What had expired is free again.", action("list_tasks"), action("list_claimed_jobs"))


def dashboard_linked() -> Contract:
    """A link was made that signs one browser in."""
    return continue_work("Give `url` to the person who asked for it; it works once.")


def keys_shown() -> Contract:
    """Keys were listed, read or revoked."""
    return continue_work("The keys are as shown.", action("list_keys"))


def key_issued() -> Contract:
    """A key was created, or has a new secret, which is only in this answer."""
    return continue_work("Keep `apiKey` now: it is not shown again.", action("list_keys"))
