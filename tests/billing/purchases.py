"""Steps of a purchase, with the checks that every answer of `/v1/billing` must pass."""

import itertools
from typing import Any

from tests.compat.octostore.server import Server
from tests.compat.octostore.wire import Answer
from tests.compat.orchestrion import contracts
from tests.compat.orchestrion.account import Account, register
from tests.compat.orchestrion.expect import envelope, success

PAID_PLANS = {"basic": ("Basic", 9.99), "pro": ("Pro", 24.99), "agency": ("Agency", 59.99)}
CHECKOUT = "POST /v1/billing/checkout"
STATUS = "GET /v1/billing/status"
STATUS_KEYS = {
    *("planId", "planName", "planExpiresAt", "expired", "cycleStartedAt", "cycleEndsAt", "usage", "limits"),
    "agent_contract",
}
THIRTY_DAYS = 30 * 86_400


_addresses = itertools.count(1)


def new_account(server: Server) -> Account:
    """A new account, each from a different address: one address may not register many."""
    number = next(_addresses)
    return register(server.anyone.with_headers(CF_Connecting_IP=f"10.0.{number // 250}.{number % 250 + 1}"))


def request_checkout(account: Account, plan: str = "pro") -> Answer:
    return account.post("/v1/billing/checkout", {"planId": plan})


def expect_checkout(answer: Answer, plan: str = "pro") -> dict[str, Any]:
    """A purchase that waits for the payer's approval."""
    body = success(answer)
    name, price = PAID_PLANS[plan]
    assert body.keys() == {
        *("purchaseId", "orderId", "checkoutUrl", "planId", "planName", "priceUsd", "checkoutExpiresAt"),
        "agent_contract",
    }
    assert (body["planId"], body["planName"], body["priceUsd"]) == (plan, name, price)
    verify = contracts.action("verify_payment", "POST /v1/billing/verify", best=True)
    assert contracts.plain(body["agent_contract"]) == contracts.contract(verify)
    return body


def approved_purchase(account: Account, paypal: Any, plan: str = "pro") -> dict[str, Any]:
    """A purchase that the payer has approved."""
    purchase = expect_checkout(request_checkout(account, plan), plan)
    paypal.approve(purchase["orderId"])
    return purchase


def verify(account: Account, purchase: dict[str, Any]) -> Answer:
    return account.post("/v1/billing/verify", {"purchaseId": purchase["purchaseId"]})


def status_of(account: Account) -> dict[str, Any]:
    body = success(account.get("/v1/billing/status"))
    assert body.keys() == STATUS_KEYS
    return body


def completed(answer: Answer, purchase: dict[str, Any]) -> dict[str, Any]:
    """The plan is active, as it was bought."""
    body = success(answer)
    assert body.keys() == STATUS_KEYS | {"purchaseId", "status"}
    assert (body["purchaseId"], body["status"]) == (purchase["purchaseId"], "completed")
    assert (body["planId"], body["expired"]) == (purchase["planId"], False)
    return body


def payments_off(answer: Answer) -> dict[str, Any]:
    """This server takes no payments, and the advice is to ask its operator."""
    body = envelope(answer, 402)
    assert (body["error"], body["reason"]) == ("payments_not_configured", "not_set_up")
    assert body["agent_contract"]["next_actions"][0]["action"] == "ask_operator"
    return body


def payment_failed(answer: Answer, reason: str) -> dict[str, Any]:
    """402: nothing was charged or activated, and the answer recommends a new checkout."""
    body = envelope(answer, 402)
    assert (body["error"], body["reason"]) == ("payment_failed", reason)
    retry = contracts.action("retry_checkout", CHECKOUT, best=True)
    check = contracts.action("check_billing_status", STATUS)
    assert contracts.plain(body["agent_contract"]) == contracts.contract(retry, check)
    return body


def unavailable(answer: Answer) -> dict[str, Any]:
    """The outcome is unknown, and the answer says that a repetition is safe."""
    body = envelope(answer, 503)
    assert (body["error"], body["applied"]) == ("payment_unavailable", "unknown")
    assert answer.header("Retry-After") == "5"
    wait = contracts.action("retry_after_wait", best=True, wait=5)
    assert contracts.plain(body["agent_contract"]) == contracts.contract(wait, retryable=True)
    return body


def not_found(answer: Answer) -> dict[str, Any]:
    body = envelope(answer, 404)
    assert body["error"] == "purchase_not_found"
    retry = contracts.action("retry_checkout", CHECKOUT, best=True)
    assert contracts.plain(body["agent_contract"]) == contracts.contract(retry)
    return body


def event_kinds(account: Account, subject: str) -> list[str]:
    """Kinds of the events of a subject, oldest first."""
    events = account.get(f"/v1/events?subject={subject}").json["events"]
    return [event["kind"] for event in events]
