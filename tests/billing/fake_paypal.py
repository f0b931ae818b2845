"""Fake PayPal: a local HTTP server that keeps orders, captures each payment once, and can fail on request.

It answers what PayPal documents for the requests that we make, and refuses all others. Tests approve orders by a method
call instead of a browser.
"""

import base64
import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CLIENT_ID = "the-merchant"
SECRET = "the-merchants-secret-canary"
PAYPAL_MESSAGE = "words-of-paypal-canary"
"""PayPal's own error text, which our callers must never see."""

Reply = tuple[int, dict[str, Any]]


class FakePayPal:
    """Orders, captured payments, and the failures to simulate."""

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.charges: list[tuple[str, str]] = []
        """(order, amount) of every captured payment."""
        self.requests: list[tuple[str, str]] = []
        """(method, path) of every request."""
        self.tokens: set[str] = set()
        self.token_seconds = 3600
        self.answer_with: int | None = None
        """If set, the status of every response: PayPal is failing."""
        self.delay = 0.0
        """Seconds before every response."""
        self.declines = False
        self.lose_answers = False
        """Capture the payment, then close the connection without a response."""
        self.take_instead: dict[str, str] | None = None
        """Capture this amount instead of the order's."""
        self.capture_status = "COMPLETED"
        self.approve_rel = "payer-action"
        self.taken = threading.Event()
        """Set when a payment was captured."""
        self.may_answer = threading.Event()
        """Captures are answered only while this is set."""
        self.may_answer.set()
        self.forgets_request_ids = False
        self._replies: dict[tuple[str, str], Reply] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    def reset(self) -> None:
        """Stop simulating failures; orders and payments stay."""
        self.answer_with = self.take_instead = None
        self.declines = self.lose_answers = self.forgets_request_ids = False
        self.delay, self.capture_status = 0.0, "COMPLETED"
        self.may_answer.set()
        self.taken.clear()
        if self._server is None:
            self.start()

    def charged(self, order_id: str) -> list[str]:
        """The amounts captured for an order."""
        return [amount for charged, amount in self.charges if charged == order_id]

    def start(self) -> "FakePayPal":
        stand_in = self

        class Handler(_Handler):
            paypal = stand_in

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop the server; orders and payments stay."""
        self.may_answer.set()
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # -- what a payer does ---------------------------------------------------------------------------------------

    def approve(self, order_id: str) -> None:
        self.orders[order_id]["status"] = "APPROVED"

    def expire_tokens(self) -> None:
        self.tokens.clear()

    # -- what PayPal does ----------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> Reply | None:
        """The answer; None closes the connection."""
        if self._server is None:  # an older connection
            return None
        self.requests.append((method, path))
        time.sleep(self.delay)
        if self.answer_with is not None:
            return self.answer_with, {"name": "INTERNAL_SERVER_ERROR", "message": PAYPAL_MESSAGE}
        if (method, path) == ("POST", "/v1/oauth2/token"):
            return self._token(headers, body)
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return 401, {"error": "invalid_token", "error_description": PAYPAL_MESSAGE}
        if method == "GET":
            return self._read_order(path.rpartition("/")[2])
        with self._lock:
            reply = self._once(path, headers, json.loads(body))
        if path.endswith("/capture"):
            self.may_answer.wait()
        return None if path.endswith("/capture") and self.lose_answers else reply

    def _token(self, headers: Any, body: bytes) -> Reply:
        right = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
        if headers.get("Authorization") != f"Basic {right}":
            return 401, {"error": "invalid_client", "error_description": PAYPAL_MESSAGE}
        if body != b"grant_type=client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        token = f"token-canary-{next(self._numbers)}"
        self.tokens.add(token)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.token_seconds}

    def _read_order(self, order_id: str) -> Reply:
        order = self.orders.get(order_id)
        return (404, _error("RESOURCE_NOT_FOUND")) if order is None else (200, order)

    def _once(self, path: str, headers: Any, body: dict[str, Any]) -> Reply:
        """A repeated request id gets the same answer and has no effect."""
        key = (path, headers.get("PayPal-Request-Id", ""))
        if not key[1]:
            return 400, _error("PAYPAL_REQUEST_ID_REQUIRED")
        if key not in self._replies or self.forgets_request_ids:
            parts = path.split("/")
            self._replies[key] = self._capture(parts[-2]) if parts[-1] == "capture" else self._create(body)
        status, document = self._replies[key]
        # What is short by default leaves the amounts out.
        full = headers.get("Prefer") == "return=representation" or status >= 400
        return status, document if full else {key: document[key] for key in ("id", "status", "links")}

    def _create(self, body: dict[str, Any]) -> Reply:
        (unit,) = body["purchase_units"]
        experience = body["payment_source"]["paypal"]["experience_context"]
        assert body["intent"] == "CAPTURE"
        assert experience["return_url"].startswith("http")
        assert experience["cancel_url"].startswith("http")
        order_id = f"ORDER{next(self._numbers):012d}"
        approval = f"{self.url}/checkoutnow?token={order_id}"
        order = {
            "id": order_id,
            "intent": "CAPTURE",
            "status": "PAYER_ACTION_REQUIRED",
            "purchase_units": [unit],
            "links": [
                {"rel": "self", "href": f"{self.url}/v2/checkout/orders/{order_id}", "method": "GET"},
                {"rel": self.approve_rel, "href": approval, "method": "GET"},
            ],
        }
        self.orders[order_id] = order
        return 200, order

    def _capture(self, order_id: str) -> Reply:
        order = self.orders.get(order_id)
        if order is None:
            return 404, _error("RESOURCE_NOT_FOUND")
        if order["status"] == "COMPLETED":
            return 422, _error("ORDER_ALREADY_CAPTURED")
        if order["status"] != "APPROVED":
            return 422, _error("ORDER_NOT_APPROVED")
        if self.declines:
            order["status"] = "PAYER_ACTION_REQUIRED"
            return 422, _error("INSTRUMENT_DECLINED")
        (unit,) = order["purchase_units"]
        amount = self.take_instead or unit["amount"]
        capture = {
            "id": f"CAPTURE{next(self._numbers):012d}",
            "status": self.capture_status,
            "amount": amount,
            "final_capture": True,
            "custom_id": unit["custom_id"],
            "invoice_id": unit["invoice_id"],
        }
        unit = unit | {"payments": {"captures": [capture]}}
        self.orders[order_id] = order = order | {"status": "COMPLETED", "purchase_units": [unit]}
        self.charges.append((order_id, f"{amount['value']} {amount['currency_code']}"))
        self.taken.set()
        return 201, order


def _error(issue: str) -> dict[str, Any]:
    return {
        "name": "UNPROCESSABLE_ENTITY",
        "message": PAYPAL_MESSAGE,
        "details": [{"issue": issue, "description": PAYPAL_MESSAGE}],
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    paypal: FakePayPal

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        reply = self.paypal.answer(self.command, self.path, self.headers, body)
        if reply is None:
            self.close_connection = True
            return
        status, document = reply
        data = json.dumps(document).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the caller timed out and closed the connection
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing."""
