"""`agent_contract` of webhooks and their deliveries."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, contract


def changed(webhook_id: str) -> Contract:
    """A webhook was read or changed; its deliveries show whether messages arrive."""
    return contract(action("list_deliveries", webhook_id, best=True), action("test_webhook", webhook_id))


def listed(*, is_empty: bool) -> Contract:
    """The account's webhooks were listed."""
    return contract(action("create_webhook", best=is_empty))


def deliveries_listed(webhook_id: str) -> Contract:
    """The last page of deliveries was listed."""
    return contract(
        action("read_webhook", webhook_id, best=True),
        action("replay_deliveries", webhook_id, why="Send dead letters again."),
    )


def replay_unfinished(webhook_id: str) -> Contract:
    """As many deliveries as one request may replay were replayed, and there are more."""
    why = "Send it again; if the answer has `nextAfter`, send that as `after`."
    return contract(action("replay_deliveries", webhook_id, best=True, why=why))
