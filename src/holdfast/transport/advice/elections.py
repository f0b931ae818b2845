"""`agent_contract` of elections."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, contract, work_over


def leading(election_id: str) -> Contract:
    """The caller leads."""
    return contract(action("renew_leadership", election_id, best=True), action("resign", election_id))


def following(election_id: str, wait: int) -> Contract:
    """Another candidate leads."""
    return contract(
        action("retry_after_wait", election_id, operation="campaign", best=True, wait=wait),
        action("get_election_status", election_id),
        retryable=True,
    )


def resigned(election_id: str) -> Contract:
    """The caller stopped leading."""
    return work_over(
        "You do not lead any more.",
        action("get_election_status", election_id),
        action("campaign", election_id, why="Only to lead again."),
    )


def vacant(election_id: str) -> Contract:
    """There is no leader."""
    return contract(action("campaign", election_id, best=True))
