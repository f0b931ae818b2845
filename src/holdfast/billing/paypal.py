"""PayPal as payment provider: Orders v2 of its REST API, with an OAuth access token.

A capture may succeed while its response is lost. So the order is read before the payment is captured, every POST has an
idempotency key (`PayPal-Request-Id`), and the capture is read from the order if PayPal says that it exists.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import quote

import httpx2

from holdfast.billing.paypal_token import AccessToken
from holdfast.billing.provider import Declined, NotApproved, Order, OrderRequest, PaymentError, Unavailable
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
_ALREADY_CAPTURED = "ORDER_ALREADY_CAPTURED"
_MESSAGES: dict[type[PaymentError], str] = {
    NotApproved: "the payer has not approved the payment yet",
    Declined: "PayPal declined the payment",
}


class PayPal:
    """A merchant's account at PayPal's live or sandbox API."""

    name = "paypal"

    def __init__(self, client_id: str, secret: str, url: str, seconds: float = CALL_SECONDS) -> None:
        self._seconds = seconds
        timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        self._http = httpx2.AsyncClient(base_url=url, timeout=timeout)
        self._token = AccessToken(self._http, client_id, secret)

    async def create_order(self, order: OrderRequest) -> Order:
        """Create an order."""
        unit = {
            "reference_id": order.purchase_id,
            "custom_id": order.purchase_id,
            "invoice_id": order.purchase_id,
            "description": order.description,
            "amount": {"currency_code": order.currency, "value": f"{order.cents // 100}.{order.cents % 100:02d}"},
        }
        experience = {
            "return_url": order.return_url,
            "cancel_url": order.cancel_url,
            "user_action": "PAY_NOW",
            "shipping_preference": "NO_SHIPPING",
        }
        body = {
            "intent": "CAPTURE",
            "purchase_units": [unit],
            "payment_source": {"paypal": {"experience_context": experience}},
        }
        answer = await self._call("POST", _ORDERS, f"order-{order.purchase_id}", body)
        links = {link.get("rel"): link.get("href") for link in _list(answer, "links")}
        approval = links.get("payer-action", links.get("approve"))
        if not isinstance(answer.get("id"), str) or not isinstance(approval, str):
            raise Unavailable("PayPal returned no approval link for the order")
        return Order(answer["id"], approval)

    async def capture(self, order_id: str) -> Capture:
        """Capture the payment, or return the capture if that has happened already."""
        path = f"{_ORDERS}/{quote(order_id, safe='')}"
        order = await self._call("GET", path)
        if order.get("status") == "COMPLETED":
            return _parse_capture(order)
        if order.get("status") != "APPROVED":
            raise NotApproved(_MESSAGES[NotApproved])
        try:
            return _parse_capture(await self._call("POST", f"{path}/capture", f"capture-{order_id}", {}))
        except _AlreadyCaptured:  # by an earlier request whose response was lost
            return _parse_capture(await self._call("GET", path))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _call(self, method: str, path: str, request_id: str = "", body: Any = None) -> dict[str, Any]:
        """Call the API; an access token that PayPal refuses is replaced once."""
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._send(method, path, request_id, body)
                if answer.status_code == httpx2.codes.UNAUTHORIZED:
                    self._token.forget()
                    answer = await self._send(method, path, request_id, body)
        except (httpx2.HTTPError, TimeoutError) as error:
            # Only the type of the error: its message may quote the request.
            raise Unavailable(f"PayPal did not answer ({type(error).__name__})") from None
        return _parse_response(answer)

    async def _send(self, method: str, path: str, request_id: str, body: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {await self._token.current()}"}
        if method == "POST":
            # Without `Prefer`, PayPal leaves out the captured amount.
            headers |= {"PayPal-Request-Id": request_id, "Prefer": "return=representation"}
        return await self._http.request(method, path, headers=headers, json=body)


class _AlreadyCaptured(Unavailable):
    """The payment was captured before this request."""


def _parse_response(answer: httpx2.Response) -> dict[str, Any]:
    """The document of a response; raises the payment error of a refusal."""
    status = answer.status_code
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unavailable(f"PayPal answered {status} without a JSON object")
    if answer.is_success:
        return document
    issues = [issue["issue"] for issue in _list(document, "details") if isinstance(issue.get("issue"), str)]
    if _ALREADY_CAPTURED in issues:
        raise _AlreadyCaptured("PayPal has already captured this order")
    if status == httpx2.codes.NOT_FOUND:  # PayPal removes orders that are not approved in time
        raise NotApproved("PayPal no longer has this order")
    refusal = next((_REFUSALS[issue] for issue in issues if issue in _REFUSALS), None)
    if refusal is not None:
        raise refusal(_MESSAGES[refusal])
    raise Unavailable(f"PayPal answered {status}")


def _parse_capture(order: dict[str, Any]) -> Capture:
    """The capture of a completed order. The order's own status is not enough: its payment may have been declined."""
    try:
        (unit,) = order["purchase_units"]
        (capture,) = unit["payments"]["captures"]
        amount = capture["amount"]
        status, paid_for = capture["status"], capture.get("custom_id", unit.get("custom_id", ""))
        found = Capture(capture["id"], paid_for, _cents(amount["value"]), amount["currency_code"])
    except (KeyError, TypeError, ValueError):
        raise Unavailable("PayPal described the capture in an unknown form") from None
    if status == "PENDING":
        raise Unavailable("the payment is still pending at PayPal")
    if status != "COMPLETED":  # declined, failed or refunded
        raise Declined(_MESSAGES[Declined])
    return found


def _cents(value: str) -> int:
    """An amount in cents: 9.99 is 999. Money is never a float."""
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{2})?", value):
        raise ValueError(value)
    whole, _, rest = value.partition(".")
    return int(whole) * 100 + int(rest or 0)


def _list(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list field; empty if the field is not a list."""
    found = document.get(name)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
