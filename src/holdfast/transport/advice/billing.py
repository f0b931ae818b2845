"""`agent_contract` of buying: an agent can only hand the checkout to a person, and verify once they have paid."""

from __future__ import annotations

from holdfast.transport.advice.contract import Contract, action, contract
from holdfast.transport.advice.tasks import CHECKOUT, CLAIM, CREATE

STATUS, VERIFY = "GET /v1/billing/status", "POST /v1/billing/verify"


def priced() -> Contract:
    """The plans were listed."""
    return contract(
        action("check_billing_status", STATUS, best=True, why="See what you have, and what of it is used."),
        action("upgrade_plan", CHECKOUT, why="Ask for one of these plans."),
    )


def checked_out() -> Contract:
    """A person must pay before anything else can happen."""
    return contract(
        action(
            "verify_payment",
            VERIFY,
            best=True,
            why="Hand `checkoutUrl` to a person; when they have approved the payment, send the purchase id here.",
        )
    )


def in_force() -> Contract:
    """The plan holds: to work."""
    return contract(
        action("create_task", CREATE, best=True),
        action("claim_task", CLAIM),
        action("upgrade_plan", CHECKOUT, why="For more of everything."),
    )


def lapsed() -> Contract:
    """What was paid for is over."""
    return contract(
        action("renew_plan", CHECKOUT, best=True, why="The paid plan has lapsed; smaller limits hold."),
        action("create_task", CREATE),
        action("claim_task", CLAIM),
    )
