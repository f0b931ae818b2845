"""Forms: who may have sent one, and what is in it.

A cookie alone proves nothing about who wrote a form, so three things are asked: the browser says that the page which
sent it is our own (Sec-Fetch-Site, Origin), and the form carries a token that only our own pages know.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qsl, urlsplit

from holdfast.addresses import parse
from holdfast.core.errors import Forbidden
from holdfast.core.names import is_storable
from holdfast.settings import Settings
from holdfast.transport.http.request import HttpRefusal, Request
from holdfast.transport.origins import own_origins

LIMIT = 64 * 1024
FIELDS = 50
TOKEN = "token"  # noqa: S105 - the name of a field

_KIND = b"application/x-www-form-urlencoded"


class Guard:
    """Which names this server answers to, and which pages may speak to it."""

    def __init__(self, settings: Settings) -> None:
        self._origins = own_origins(settings)
        self._hosts = {urlsplit(origin).netloc for origin in self._origins}

    def check_host(self, request: Request) -> None:
        """Refuse a name that is not ours: somebody else's name that leads here is how a foreign page would get in.

        A bare address cannot be somebody else's name.
        """
        host = request.headers.get(b"host", b"").decode("latin-1").lower()
        name = urlsplit(f"//{host}").hostname or ""
        if host not in self._hosts and name != "localhost" and parse(name) is None:
            raise HttpRefusal(421, "this server is not known by that name; HOLDFAST_PUBLIC_URL tells it")

    def check_sender(self, request: Request) -> None:
        """Refuse a form that one of our own pages did not send.

        Browsers hide the Origin of pages that send no referrer, which ours are: then they must say the rest.
        """
        site = request.headers.get(b"sec-fetch-site")
        origin = request.headers.get(b"origin", b"").decode("latin-1").lower()
        if origin == "null":
            own = site == b"same-origin"
        else:
            own = not origin or origin in self._origins or urlsplit(origin).netloc == _host(request)
        if not own or site not in {None, b"same-origin"}:
            raise Forbidden("this form was sent by another page")


async def read_form(request: Request) -> dict[str, str]:
    """Its fields, each once."""
    if request.headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower() != _KIND:
        raise HttpRefusal(415, "a form is application/x-www-form-urlencoded")
    raw = await request.body(LIMIT)
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    except ValueError:
        raise HttpRefusal(400, "the form cannot be read") from None
    if not all(is_storable(value) for _, value in pairs):
        raise HttpRefusal(400, "the form contains U+0000")
    return dict(pairs)


def form_token(secret: str) -> str:
    """What every form of a visit carries; made from the cookie's secret, so there is nothing to keep."""
    return hmac.digest(secret.encode(), b"form", hashlib.sha256).hex()


def check_token(form: dict[str, str], token: str) -> None:
    """Refuse a form that does not carry it."""
    if not hmac.compare_digest(form.get(TOKEN, "").encode(), token.encode()):
        raise Forbidden("this form is not one of this visit; load the page again")


def _host(request: Request) -> str:
    return request.headers.get(b"host", b"").decode("latin-1").lower()
