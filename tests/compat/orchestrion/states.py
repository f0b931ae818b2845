"""A new task in each state."""

from typing import Any

from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import claimed, created, in_seconds, task

Task = dict[str, Any]


def pending(account: Account, **fields: object) -> Task:
    return created(account.create(**fields))


def scheduled(account: Account) -> Task:
    """Pending, but not before an hour from now."""
    return pending(account, scheduledAt=in_seconds(3600))


def held(account: Account, **fields: object) -> Task:
    """Claimed, with a live lease."""
    return claimed(account.do("claim", pending(account, **fields)["id"]))


def retrying(account: Account) -> Task:
    """Failed once and pending again."""
    return task(account.fail(held(account)["id"]))


def completed(account: Account, **fields: object) -> Task:
    return task(account.complete(held(account)["id"], **fields))


def dead(account: Account) -> Task:
    return task(account.fail(held(account, maxAttempts=1)["id"], reason="no good"))


def cancelled(account: Account) -> Task:
    return task(account.do("cancel", pending(account)["id"]))


STATES = {
    "pending": pending,
    "scheduled": scheduled,
    "retrying": retrying,
    "claimed": held,
    "completed": completed,
    "dead_letter": dead,
    "cancelled": cancelled,
}
