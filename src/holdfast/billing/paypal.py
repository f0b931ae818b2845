"""PayPal, by its REST interface: Orders v2 with a token of its OAuth.

A capture may succeed while its answer is lost. So we look at the order before we take money, name every request by
what it is for (`PayPal-Request-Id`), and read the capture back from the order when PayPal says that it exists.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import quote

import httpx2

from holdfast.billing.paypal_token import Token
from holdfast.billing.provider import Declined, NotApproved, Order, PaymentError, Unavailable, Wish
from holdfast.core.purchase import Capture

CALL_SECONDS = 10.0
CONNECT_SECONDS = 5.0

_ORDERS = "/v2/checkout/orders"
_REFUSALS: dict[str, type[PaymentError]] = {
    "ORDER_NOT_APPROVED": NotApproved,
    "PAYER_ACTION_REQUIRED": NotApproved,
    "ORDER_EXPIRED": NotApproved,
    "INSTRUMENT_DECLINED": Declined,
    "TRANSACTION_REFUSED": Declined,
    "PAYER_CANNOT_PAY": Declined,
    "PAYER_ACCOUNT_RESTRICTED": Declined,
    "PAYER_ACCOUNT_LOCKED_OR_CLOSED": Declined,
}
_CAPTURED = "ORDER_ALREADY_CAPTURED"
_TEXTS: dict[type[PaymentError], str] = {
    NotApproved: "the payer has not approved the payment yet",
    Declined: "PayPal declined the payment",
}


class PayPal:
    """One merchant at one address: the live one, or the sandbox."""

    name = "paypal"

    def __init__(self, client_id: str, secret: str, url: str, seconds: float = CALL_SECONDS) -> None:
        self._seconds = seconds
        timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        self._http = httpx2.AsyncClient(base_url=url, timeout=timeout)
        self._token = Token(self._http, client_id, secret)

    async def create_order(self, wish: Wish) -> Order:
        """Prepare a payment."""
        unit = {
            "reference_id": wish.purchase_id,
            "custom_id": wish.purchase_id,
            "invoice_id": wish.purchase_id,
            "description": wish.what,
            "amount": {"currency_code": wish.currency, "value": f"{wish.cents // 100}.{wish.cents % 100:02d}"},
        }
        experience = {
            "return_url": wish.return_url,
            "cancel_url": wish.cancel_url,
            "user_action": "PAY_NOW",
            "shipping_preference": "NO_SHIPPING",
        }
        body = {
            "intent": "CAPTURE",
            "purchase_units": [unit],
            "payment_source": {"paypal": {"experience_context": experience}},
        }
        answer = await self._ask("POST", _ORDERS, f"order-{wish.purchase_id}", body)
        links = {link.get("rel"): link.get("href") for link in _list(answer, "links")}
        approval = links.get("payer-action", links.get("approve"))
        if not isinstance(answer.get("id"), str) or not isinstance(approval, str):
            raise Unavailable("PayPal did not say where to approve the order")
        return Order(answer["id"], approval)

    async def capture(self, order_id: str) -> Capture:
        """Take the money, or find that it was taken already."""
        path = f"{_ORDERS}/{quote(order_id, safe='')}"
        order = await self._ask("GET", path)
        if order.get("status") == "COMPLETED":
            return _capture_of(order)
        if order.get("status") != "APPROVED":
            raise NotApproved(_TEXTS[NotApproved])
        try:
            return _capture_of(await self._ask("POST", f"{path}/capture", f"capture-{order_id}", {}))
        except _AlreadyCaptured:  # by a request of ours whose answer we never saw
            return _capture_of(await self._ask("GET", path))

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()

    async def _ask(self, method: str, path: str, request_id: str = "", body: Any = None) -> dict[str, Any]:
        """One question; a token that PayPal no longer takes is replaced once."""
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._send(method, path, request_id, body)
                if answer.status_code == httpx2.codes.UNAUTHORIZED:
                    self._token.forget()
                    answer = await self._send(method, path, request_id, body)
        except (httpx2.HTTPError, TimeoutError) as error:
            # Only the kind of error is told: what it says may quote the request.
            raise Unavailable(f"PayPal did not answer ({type(error).__name__})") from None
        return _read(answer)

    async def _send(self, method: str, path: str, request_id: str, body: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {await self._token.current()}"}
        if method == "POST":
            # In full: otherwise the amount that was captured is left out.
            headers |= {"PayPal-Request-Id": request_id, "Prefer": "return=representation"}
        return await self._http.request(method, path, headers=headers, json=body)


class _AlreadyCaptured(Unavailable):
    """The money was taken before this request."""


def _read(answer: httpx2.Response) -> dict[str, Any]:
    """What PayPal says, or what it refuses."""
    status = answer.status_code
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unavailable(f"PayPal answered {status} with something else than a document")
    if answer.is_success:
        return document
    issues = [issue["issue"] for issue in _list(document, "details") if isinstance(issue.get("issue"), str)]
    if _CAPTURED in issues:
        raise _AlreadyCaptured("PayPal has captured this order before")
    if status == httpx2.codes.NOT_FOUND:  # PayPal forgets orders that nobody approves
        raise NotApproved("PayPal does not know this order any more")
    refusal = next((_REFUSALS[issue] for issue in issues if issue in _REFUSALS), None)
    if refusal is not None:
        raise refusal(_TEXTS[refusal])
    raise Unavailable(f"PayPal answered {status}")


def _capture_of(order: dict[str, Any]) -> Capture:
    """The money of a completed order: a completed order alone may also mean that the payment was declined."""
    try:
        (unit,) = order["purchase_units"]
        (capture,) = unit["payments"]["captures"]
        amount = capture["amount"]
        status, paid_for = capture["status"], capture.get("custom_id", unit.get("custom_id", ""))
        found = Capture(capture["id"], paid_for, _cents(amount["value"]), amount["currency_code"])
    except (KeyError, TypeError, ValueError):
        raise Unavailable("PayPal told of a capture in a form we do not understand") from None
    if status == "PENDING":
        raise Unavailable("PayPal has not decided about the payment yet")
    if status != "COMPLETED":  # declined, failed, or given back
        raise Declined(_TEXTS[Declined])
    return found


def _cents(value: str) -> int:
    """9.99 is 999. Money is never a float here."""
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{2})?", value):
        raise ValueError(value)
    whole, _, rest = value.partition(".")
    return int(whole) * 100 + int(rest or 0)


def _list(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list; none if it is no list."""
    found = document.get(name)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
