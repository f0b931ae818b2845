"""`agent_contract` of webhooks and their deliveries."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, continue_work, contract


def changed(webhook_id: str) -> Contract:
    """A webhook was read or changed; its deliveries show whether messages arrive."""
    return continue_work(
        "The webhook is as shown.",
        action("list_deliveries", webhook_id, why="See whether messages arrive."),
        action("test_webhook", webhook_id),
    )


def listed() -> Contract:
    """The account's webhooks were listed."""
    return continue_work("These are all webhooks.", action("create_webhook"))


def deleted() -> Contract:
    """A webhook was deleted."""
    return continue_work("The webhook is deleted.", action("list_webhooks"))


def deliveries_listed(webhook_id: str) -> Contract:
    """The last page of deliveries was listed."""
    return continue_work(
        "There are no more deliveries.",
        action("read_webhook", webhook_id),
        action("replay_deliveries", webhook_id, why="Send dead letters again."),
    )


def replay_unfinished(webhook_id: str) -> Contract:
    """As many deliveries as one request may replay were replayed, and there are more."""
    why = "Send it again; if the answer has `nextAfter`, send that as `after`."
    return contract(action("replay_deliveries", webhook_id, best=True, why=why))
