"""Asks a server, with the standard library alone: a verb should be done before a richer client has been imported."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from holdfast import __version__
from holdfast.operations import OPERATIONS, Operation

DEFAULT_URL = "http://127.0.0.1:7700"
PATIENCE = 10.0
"""Seconds for an answer, beyond the time that the request itself asks to wait."""
MAX_ANSWER = 16 * 2**20
_GOOD = 400


class Refusal(Exception):
    """The server said no."""

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        self.status, self.document = status, document
        # Our routes name the code `error`; OctoStore's have a sentence there and the code beside it.
        self.code = str(document.get("code") or document.get("error") or f"http_{status}")
        self.message = str(document.get("message") or document.get("detail") or document.get("error") or self.code)
        super().__init__(self.message)

    @property
    def next_action(self) -> str | None:
        """What the server recommends first."""
        actions = self.document.get("agent_contract", {}).get("next_recommended_actions") or [{}]
        first = actions[0]
        return str(first.get("reason") or first.get("action") or "") or None


class Unreachable(Exception):
    """No answer: nothing is known about what was asked."""


class BadAddress(Exception):
    """The address or the key cannot be used at all."""


class Caller:
    """One server and one key."""

    def __init__(self, url: str | None = None, key: str | None = None) -> None:
        self.url = (url or os.environ.get("HOLDFAST_URL") or DEFAULT_URL).rstrip("/")
        self._key = key
        self._operations = {operation.name: operation for operation in OPERATIONS}
        self._parts = urlsplit(self.url)
        _check(self.url, self._parts.scheme, key)

    def call(self, name: str, *, patience: float = PATIENCE, **arguments: Any) -> dict[str, Any]:
        """Ask for an operation by its name; fields that are None are left out."""
        given = {field: value for field, value in arguments.items() if value is not None}
        patience += float(given.get("wait_seconds", 0))
        operation = self._operations[name]
        path = self._parts.path + _path(operation, given)
        headers = {"Accept": "application/json", "User-Agent": f"holdfast-cli/{__version__}"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        body = None
        if operation.method == "GET":
            path += f"?{urlencode(given)}" if given else ""
        elif given or operation.method != "DELETE":
            body = json.dumps(given).encode()
            headers["Content-Type"] = "application/json"
        status, raw = self._send(operation.method, path, body, headers, patience)
        try:
            document = json.loads(raw) if raw else {}
        except ValueError:
            document = {"message": f"{self.url} answered {status}, but not as Holdfast does: is it the right address?"}
            status = max(status, 500)
        if status >= _GOOD:
            raise Refusal(status, document if isinstance(document, dict) else {})
        return document if isinstance(document, dict) else {"answer": document}

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], patience: float
    ) -> tuple[int, bytes]:
        connection = self._connect(patience)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            raw = answer.read(MAX_ANSWER + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.url}: {str(error) or type(error).__name__}") from error
        finally:
            connection.close()
        if len(raw) > MAX_ANSWER:
            raise Unreachable(f"{self.url}: an answer of more than {MAX_ANSWER} bytes")
        return answer.status, raw

    def _connect(self, patience: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=patience)
        trust = ssl.create_default_context(cafile=os.environ.get("HOLDFAST_CA_BUNDLE"))
        return http.client.HTTPSConnection(host, port, timeout=patience, context=trust)


def read_key(path: str | None) -> str | None:
    """The key: from a file of one's own, or from the environment; never from an argument, which others can see."""
    if path is None:
        return _clean(os.environ.get("HOLDFAST_API_KEY", "")) or None
    if path == "-":
        return _clean(sys.stdin.readline())
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(file, encoding="utf-8") as opened:
            if os.fstat(file).st_mode & 0o077:
                raise BadAddress(f"others can read {path}: chmod 600 it")
            return _clean(opened.read())
    except OSError as error:
        raise BadAddress(f"cannot read the key in {path}: {error.strerror}") from error


def _clean(text: str) -> str:
    key = text.strip()
    if not key.isascii() or not key.isprintable():
        raise BadAddress("a key is one line of visible characters")
    return key


def _path(operation: Operation, arguments: dict[str, Any]) -> str:
    """The operation's path; what is in it is taken out of the arguments."""
    parts = []
    for part in operation.path.split("/"):
        if not part.startswith("{"):
            parts.append(part)
        elif part.endswith("...}"):
            parts.append(quote(str(arguments.pop(part[1:-4])), safe="/:@"))
        else:
            parts.append(quote(str(arguments.pop(part[1:-1])), safe=""))
    return "/".join(parts)


def _check(url: str, scheme: str, key: str | None) -> None:
    """A key must not travel where others can read it."""
    from holdfast.addresses import url_problem  # noqa: PLC0415 - only here, and not for those who have no key

    if scheme == "http" and (
        key is None or os.environ.get("HOLDFAST_ALLOW_INSECURE_HTTP", "").lower() in {"1", "true"}
    ):
        url = "https" + url.removeprefix("http")
    problem = url_problem(url)
    if problem is not None:
        raise BadAddress(f"the address {url}: {problem}")
