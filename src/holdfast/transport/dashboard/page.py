"""A page, and a visit to it: what every room of the dashboard works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from holdfast.core.browser_session import BrowserSession
from holdfast.core.event import Cause
from holdfast.core.names import DEFAULT_ACCOUNT, is_storable
from holdfast.core.principal import Principal
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request

if TYPE_CHECKING:
    from holdfast.transport.dashboard.bulk import Bulks
    from holdfast.transport.dashboard.cache import Cache

LIVE = "/ui/live"
MAX_TEXT = 256


class Visit:
    """Somebody who is signed in looks at an address. Handlers get nothing else."""

    def __init__(
        self,
        ctx: HandlerContext,
        request: Request,
        browser_session: BrowserSession,
        principal: Principal,
        token: str,
        *,
        bulks: Bulks,
        cache: Cache,
    ) -> None:
        self.ctx = ctx
        self.bulks = bulks
        self.cache = cache
        self.request = request
        self.browser_session = browser_session
        self.by = principal
        self.token = token
        """What every form of this visit carries."""
        self.item = ""
        """What stands in the address after the page's own: the id of one thing, or nothing."""
        self.form: dict[str, str] = {}
        """The fields of a form that was sent."""
        pairs = parse_qsl(request.scope["query_string"].decode("latin-1"), errors="replace")
        self.query = {name: value[:MAX_TEXT] for name, value in pairs if is_storable(value)}

    @property
    def account(self) -> str:
        """Whose things are shown; nothing else ever is."""
        return self.by.account

    @property
    def wants_fragments(self) -> bool:
        """Whether the page is there already and only what lives in it is asked for."""
        return b"x-fragments" in self.request.headers

    @property
    def is_awake(self) -> bool:
        """Whether a person did something: a page that refreshes itself does not keep a visit going."""
        if self.request.scope["path"] == LIVE:
            return False
        return not self.wants_fragments or b"x-awake" in self.request.headers

    def cause(self) -> Cause:
        """What the log says of who did it."""
        return Cause(self.by.id, self.request.request_id)


class Shown(msgspec.Struct, frozen=True):
    """A template and what it tells."""

    template: str
    told: dict[str, Any]
    status: int = 200


Show = Callable[[Visit], Awaitable[Shown]]
Act = Callable[[Visit], Awaitable[str | Shown]]
"""Does something and returns a word for the address: what the page says when it is shown again.

What can be shown this once only, like a new key, is shown at once instead.
"""


class Page(msgspec.Struct, frozen=True):
    """A place in the rail."""

    name: str
    """`/ui/<name>`; the first page is also `/`."""
    title: str
    key: str
    """`g` and this letter go there; none for a page that needs to be told more."""
    scope: str
    """What the visitor's key must open."""
    show: Show
    show_one: Show | None = None
    """`/ui/<name>/<id>`"""
    acts: dict[str, tuple[str, Act]] = {}
    """By the value of the button that was pressed: (scope, what it does). Posted to `/ui/<name>/<id>`."""

    house: bool = False
    """Whether it is for whoever runs this server alone."""
    within: str = ""
    """The page of the rail that leads here, if it has no place of its own there."""

    def may_see(self, principal: Principal) -> bool:
        """Whether the rail shows it."""
        return principal.may(self.scope) and (principal.account == DEFAULT_ACCOUNT or not self.house)
