"""The requests of hooks, over the standard library alone.

The client library takes longer to import than a hook may take. So the routes are written here once more; a test
compares them with the table of operations. What only a request needs is imported for the first one: most hooks send
none.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from holdfast import __version__
from holdfast.transport.cli.credentials import BadAddress, address_of, read_key
from holdfast.transport.cli.safe_address import check_address

if TYPE_CHECKING:
    from http.client import HTTPConnection

SECONDS = 2.0
"""Limit for connecting, and for each answer."""
ROUTES = {
    "check_files": ("POST", "/v1/reservations/check"),
    "list_reservations": ("GET", "/v1/reservations"),
    "release_files": ("POST", "/v1/reservations/{id}/release"),
    "get_job_owner": ("GET", "/v1/jobs/{id}"),
    "list_claimed_jobs": ("GET", "/v1/jobs"),
    "heartbeat_job": ("POST", "/v1/jobs/{id}/heartbeat"),
    "release_job": ("POST", "/v1/jobs/{id}/release"),
    "heartbeat": ("POST", "/v1/tasks/{id}/heartbeat"),
    "release_task": ("POST", "/v1/tasks/{id}/release"),
    "heartbeat_leases": ("POST", "/v1/heartbeats"),
    "list_mine": ("GET", "/v1/mine"),
}
_OK, _CLIENT_ERROR, _SERVER_ERROR = 200, 400, 500
_NO_ANSWER = {401, 429}
"""Refusals that say nothing about what was asked."""


class Unanswered(Exception):
    """The server could not be asked; the message says why."""


class Refused(Exception):
    """The server refused the request."""


class Server:
    """A server and the key for it; one connection for all requests of a hook."""

    def __init__(self, url: str | None, key_file: str | None) -> None:
        try:
            self.url = address_of(url)
            key = read_key(key_file, url)
            check_address(self.url, key)
        except BadAddress as error:
            raise Unanswered(str(error)) from error
        self._headers = {"user-agent": f"holdfast-hook/{__version__}", "accept": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._parts = urlsplit(self.url)
        self._connection: HTTPConnection | None = None

    def call(self, operation: str, row_id: str = "", **arguments: Any) -> dict[str, Any]:
        """The answer to a request. Raises Refused if it is refused, Unanswered if there is none or no key for it."""
        from http.client import HTTPException

        method, path = ROUTES[operation]
        target = self._parts.path + path.replace("{id}", quote(row_id, safe=""))
        body = None
        if method == "GET":
            target += f"?{urlencode(arguments)}" if arguments else ""
        else:
            body = json.dumps(arguments).encode()
        try:
            status, content = self._send(method, target, body)
            answer: dict[str, Any] = json.loads(content)
        except (OSError, HTTPException, ValueError) as error:
            raise Unanswered(f"no answer from {self.url}: {error}") from error
        if status == _OK:
            return answer
        message = f"{answer.get('message')} ({answer.get('error')})"
        if _CLIENT_ERROR <= status < _SERVER_ERROR and status not in _NO_ANSWER:
            raise Refused(message)
        raise Unanswered(f"{self.url}: {message}")

    def _send(self, method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        kind = {} if body is None else {"content-type": "application/json"}
        self._connection.request(method, target, body, self._headers | kind)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _connect(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return HTTPConnection(host, port, timeout=SECONDS)
        import ssl

        trust = ssl.create_default_context(cafile=os.environ.get("HOLDFAST_CA_BUNDLE"))
        return HTTPSConnection(host, port, timeout=SECONDS, context=trust)
