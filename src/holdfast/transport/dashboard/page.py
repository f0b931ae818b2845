"""A page of the dashboard, the request for one, and its answer: the types that every page works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from holdfast.core.browser_session import BrowserSession
from holdfast.core.event import Cause
from holdfast.core.names import DEFAULT_ACCOUNT, is_storable
from holdfast.core.principal import ADMIN_ID, Principal
from holdfast.transport.dashboard.access.permissions import may_use
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request

if TYPE_CHECKING:
    from holdfast.transport.dashboard.bulk import BulkOperations
    from holdfast.transport.dashboard.cache import Cache

LIVE = "/ui/live"
MAX_TEXT = 256


class PageRequest:
    """A request of a signed-in browser. Handlers of pages and of forms get nothing else."""

    def __init__(
        self,
        ctx: HandlerContext,
        http: Request,
        browser_session: BrowserSession,
        principal: Principal,
        token: str,
        *,
        bulk_operations: BulkOperations,
        cache: Cache,
    ) -> None:
        self.ctx = ctx
        self.bulk_operations = bulk_operations
        self.cache = cache
        self.http = http
        self.browser_session = browser_session
        self.by = principal
        self.token = token
        """The token that every form of this browser session carries."""
        self.item = ""
        """The rest of the address after the page's name: the id of one item, or nothing."""
        self.form: dict[str, str] = {}
        """The fields of the form that was sent."""
        pairs = parse_qsl(http.scope["query_string"].decode("latin-1"), errors="replace")
        self.selected = [value for name, value in pairs if name == "id" and is_storable(value)]
        """Ids of the rows that were selected in a list."""
        self.query = {name: value[:MAX_TEXT] for name, value in pairs if is_storable(value)}

    @property
    def account(self) -> str:
        """The only account whose data may be shown."""
        return self.by.account

    @property
    def wants_fragments(self) -> bool:
        """Whether an open page refreshes its live elements and needs no layout."""
        return b"x-fragments" in self.http.headers

    @property
    def is_by_user(self) -> bool:
        """Whether a person caused the request: a page that refreshes itself does not extend its browser session."""
        if self.http.scope["path"] == LIVE:
            return False
        return not self.wants_fragments or b"x-awake" in self.http.headers

    @property
    def key_hash(self) -> str:
        """Hash of the key that started the browser session; empty for the admin key, which has no row."""
        return "" if self.by.id == ADMIN_ID else self.browser_session.key_hash

    def cause(self) -> Cause:
        """The actor and request that the event log records for a change."""
        return Cause(self.by.id, self.http.request_id)


class TemplateResponse(msgspec.Struct, frozen=True):
    """A template, its variables and the HTTP status."""

    template: str
    variables: dict[str, Any]
    status: int = 200


Show = Callable[[PageRequest], Awaitable[TemplateResponse]]
Action = Callable[[PageRequest], Awaitable[str | TemplateResponse]]
"""Handles a form. Returns the `done` parameter of the page to redirect to.

What can be shown only once, like a new key, is returned as a template instead.
"""


class Page(msgspec.Struct, frozen=True):
    """An entry of the navigation."""

    name: str
    """`/ui/<name>`; the first page is also `/`."""
    title: str
    key: str
    """Keyboard shortcut: `g` and this letter. Empty for a page that is not in the navigation."""
    operation: str
    """The operation that the key must be allowed to use."""
    show: Show
    show_one: Show | None = None
    """`/ui/<name>/<id>`"""
    actions: dict[str, tuple[str, Action]] = {}
    """By the value of the submit button: (operation, handler). Posted to `/ui/<name>/<id>`."""

    server_only: bool = False
    """Whether only keys of the server's own account may see it."""
    parent: str = ""
    """The page of the navigation that links here, if this one has no entry there."""

    def may_see(self, principal: Principal) -> bool:
        """Whether a key may open the page."""
        return may_use(principal, self.operation) and (principal.account == DEFAULT_ACCOUNT or not self.server_only)
