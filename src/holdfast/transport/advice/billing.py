"""`agent_contract` of billing: an agent passes the checkout to a person and verifies the payment afterwards."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, continue_work, contract


def plans_listed() -> Contract:
    """The plans were listed."""
    return continue_work(
        "These are the plans. Buying one is for a person to decide.",
        action("check_billing_status", operation="billing_status", why="Read your plan and how much of it is used."),
        action("upgrade_plan", operation="checkout", why="Order one of these plans."),
    )


def checkout_created() -> Contract:
    """A person must pay before anything else can happen."""
    return contract(
        action(
            "verify_payment",
            best=True,
            why="Give `checkoutUrl` to a person; after they approve the payment, send the purchase id here.",
        )
    )


def plan_active() -> Contract:
    """The plan is in force."""
    return continue_work(
        "The plan is in force; `limits` and `usage` show what is left of it.",
        action("create_task"),
        action("claim_task"),
        action("upgrade_plan", operation="checkout", why="For higher limits."),
    )


def plan_expired() -> Contract:
    """The paid plan has ended."""
    return contract(
        action("renew_plan", operation="checkout", best=True, why="The paid plan has expired; lower limits apply."),
        action("create_task"),
        action("claim_task"),
    )
