"""Forms: checks that one of our own pages sent a form (CSRF protection), and reads its fields.

A cookie alone does not prove who wrote a form. Three things are checked: the browser's Sec-Fetch-Site and Origin say
that one of our own pages sent it, and the form carries a token that only our own pages know.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import SplitResult, parse_qsl, urlsplit

from holdfast.addresses import parse
from holdfast.core.errors import Forbidden
from holdfast.core.names import is_storable
from holdfast.settings import Settings
from holdfast.transport.http.request import HttpRefusal, Request
from holdfast.transport.origins import own_origins

MAX_BYTES = 64 * 1024
MAX_FIELDS = 50
CSRF_FIELD = "token"

_CONTENT_TYPE = b"application/x-www-form-urlencoded"


class RequestGuard:
    """Checks the Host header of requests, and the origin of forms."""

    def __init__(self, settings: Settings) -> None:
        self._origins = own_origins(settings)
        self._hosts = {urlsplit(origin).netloc for origin in self._origins}

    def check_host(self, request: Request) -> None:
        """Refuse a host name that is not ours, which is how DNS rebinding lets a foreign page reach this server.

        A plain IP address cannot be another site's name.
        """
        host = _host(request)
        name = _split(f"//{host}", "Host").hostname or ""
        if host not in self._hosts and name != "localhost" and parse(name) is None:
            raise HttpRefusal(421, "this server does not answer to that host name; set it as HOLDFAST_PUBLIC_URL")

    def check_sender(self, request: Request) -> None:
        """Refuse a form that none of our own pages sent.

        Our pages send no referrer, and browsers then send `Origin: null`: Sec-Fetch-Site must say same-origin instead.
        """
        site = request.headers.get(b"sec-fetch-site")
        origin = request.headers.get(b"origin", b"").decode("latin-1").lower()
        if origin == "null":
            own = site == b"same-origin"
        else:
            own = not origin or origin in self._origins or _split(origin, "Origin").netloc == _host(request)
        if not own or site not in {None, b"same-origin"}:
            raise Forbidden("this form was sent by another page")


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form; of a repeated field the last value counts."""
    if request.headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower() != _CONTENT_TYPE:
        raise HttpRefusal(415, "a form must be application/x-www-form-urlencoded")
    raw = await request.body(MAX_BYTES)
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise HttpRefusal(400, "the form cannot be read") from None
    if not all(is_storable(value) for _, value in pairs):
        raise HttpRefusal(400, "the form contains U+0000")
    return dict(pairs)


def form_token(secret: str) -> str:
    """The token of a browser session's forms; derived from the cookie's secret, so it needs no storage."""
    return hmac.digest(secret.encode(), b"form", hashlib.sha256).hex()


def check_token(form: dict[str, str], token: str) -> None:
    """Refuse a form without the browser session's token."""
    if not hmac.compare_digest(form.get(CSRF_FIELD, "").encode(), token.encode()):
        raise Forbidden("this form belongs to another browser session; load the page again")


def _split(address: str, header: str) -> SplitResult:
    """The parts of an address in a header, or 400 if it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        raise HttpRefusal(400, f"the {header} header is not a valid address") from None


def _host(request: Request) -> str:
    return request.headers.get(b"host", b"").decode("latin-1").lower()
