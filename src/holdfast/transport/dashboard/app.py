"""The frame: which page an address means, who may see it, and what every answer carries."""

from __future__ import annotations

import re
from typing import Any

from holdfast import __version__
from holdfast.core.errors import Forbidden, HoldfastError, RateLimited, Unauthenticated
from holdfast.core.names import is_storable
from holdfast.core.plan import MUTATION, READ
from holdfast.transport.dashboard import cookies, labels
from holdfast.transport.dashboard.forms import Guard, check_token, read_form
from holdfast.transport.dashboard.live_updates import Live
from holdfast.transport.dashboard.page import LIVE, Page, Shown, Visit
from holdfast.transport.dashboard.pages import PAGES
from holdfast.transport.dashboard.sign_in import SignIn
from holdfast.transport.dashboard.static_files import StaticFiles
from holdfast.transport.dashboard.templating import Templates, segment
from holdfast.transport.http.api.errors import code_and_message, status_of
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, HttpRefusal, Request, Response
from holdfast.transport.http.routing import decode_segment

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'"
)
HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"vary", b"accept, cookie"),
)
_HTML = b"text/html; charset=utf-8"
_INSIDE = re.compile(r"/(ui(/[^\\\x00-\x20]*)?(\?[^\\\x00-\x20]*)?)?")


class Dashboard:
    """Every page, behind one gate."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._door = ctx
        self._guard = Guard(ctx.settings)
        self._gate = SignIn(ctx)
        self._live = Live(self._gate)
        self._statics = StaticFiles()
        self._pages = {page.name: page for page in PAGES}
        self._paper = Templates(self._statics, self._pages.keys())

    async def answer(self, request: Request) -> Response:
        """A page, a redirect after a form, a file or the stream; a refusal is a page too."""
        visit: Visit | None = None
        try:
            self._guard.check_host(request)
            path = request.scope["raw_path"].decode("latin-1")
            if path.startswith("/ui/static/"):
                return self._statics.answer(path.removeprefix("/ui/static/"))
            if request.scope["method"] == "POST":
                return await self._post(request, path)
            if request.scope["method"] not in {"GET", "HEAD"}:
                raise HttpRefusal(405, "pages answer GET and POST", headers=((b"allow", b"GET, HEAD, POST"),))
            if path.startswith("/ui/enter/"):
                return self._bare(request, Shown("enter.html", {"secret": path.removeprefix("/ui/enter/")}))
            visit = await self._gate.find(request)
            if visit is None:
                raise Unauthenticated("sign in to see this")
            if path == LIVE:
                return await self._live.answer(visit)
            await self._charge(visit, READ)
            return self._render(visit, *await self._find(visit, path))
        except HoldfastError as error:
            return self._refuse(request, visit, error)

    # -- addresses -----------------------------------------------------------------------------------------------

    def _page(self, path: str) -> tuple[Page, str]:
        """The page and what of the address is left for it."""
        name, _, rest = path.removeprefix("/ui").strip("/").partition("/")
        page = PAGES[0] if not name else self._pages.get(name)
        if page is None:
            raise HttpRefusal(404, "there is no such page")
        item = decode_segment(rest.encode("latin-1"))
        if not is_storable(item):
            raise HttpRefusal(404, "there is no such page")
        return page, item

    async def _find(self, visit: Visit, path: str) -> tuple[Page, Shown]:
        page, visit.item = self._page(path)
        if not page.may_see(visit.by):
            raise Forbidden("your key does not open this page", scope=page.scope)
        show = page.show_one if visit.item else page.show
        if show is None:
            raise HttpRefusal(404, "there is no such page")
        return page, await show(visit)

    async def _post(self, request: Request, path: str) -> Response:
        self._guard.check_sender(request)
        form = await read_form(request)
        if path == "/ui/sign-in":
            return _go(form.get("next", "/"), await self._gate.sign_in(request, form.get("key", "")))
        if path == "/ui/enter":
            return _go("/", await self._gate.enter(request, form.get("secret", "")))
        if path == "/ui/theme":
            return _go(form.get("next", "/"), cookies.set_theme(form.get("theme", "")))
        visit = await self._gate.find(request)
        if visit is None:
            raise Unauthenticated("your visit is over: sign in again")
        check_token(form, visit.token)
        if path == "/ui/sign-out":
            return _go("/", await self._gate.leave(visit))
        page, visit.item = self._page(path)
        scope, act = page.acts.get(form.get("act", ""), ("", None))
        if act is None:
            raise HttpRefusal(404, "there is nothing to do here")
        if not (page.may_see(visit.by) and visit.by.may(scope)):
            raise Forbidden("your key may look, but not do this", scope=scope)
        await self._charge(visit, MUTATION)
        visit.form = form
        done = await act(visit)
        if isinstance(done, Shown):
            return self._render(visit, page, done)
        return _go(f"/ui/{page.name}/{segment(visit.item)}?done={done}")

    async def _charge(self, visit: Visit, limit_class: str) -> None:
        """Pages and forms cost what the same look or change costs at the API."""
        visit.request.principal = visit.by
        visit.request.allowance = await self._door.allowance(visit.account)
        await self._door.charge(visit.request, limit_class)

    # -- answers -------------------------------------------------------------------------------------------------

    def _render(self, visit: Visit, page: Page, shown: Shown) -> Response:
        told = self._common(visit.request) | {
            "by": visit.by,
            "token": visit.token,
            "page": page,
            "rail": [each for each in PAGES if each.key and each.may_see(visit.by)],
            "layout": "fragments.html" if visit.wants_fragments else "layout.html",
            "done": visit.query.get("done", ""),
        }
        return Response(shown.status, self._paper.render(shown.template, told | shown.told), HEADERS, _HTML)

    def _bare(self, request: Request, shown: Shown, headers: tuple[Header, ...] = ()) -> Response:
        """A page for somebody who is not signed in."""
        body = self._paper.render(shown.template, self._common(request) | shown.told)
        return Response(shown.status, body, (*HEADERS, *headers), _HTML)

    def _refuse(self, request: Request, visit: Visit | None, error: HoldfastError) -> Response:
        status = status_of(error)
        message = code_and_message(error, status)[1]
        headers: tuple[Header, ...] = error.headers if isinstance(error, HttpRefusal) else ()
        if isinstance(error, RateLimited):
            headers = ((b"retry-after", str(error.retry_after).encode()),)
        if isinstance(error, Unauthenticated) or (visit is None and isinstance(error, RateLimited)):
            asked = request.scope["method"] == "POST"
            where = "/" if asked else _address(request)
            told = {"next": where, "problem": message if asked else ""}
            if where == "/" and not asked and b"x-fragments" not in request.headers:
                status = 200  # the front door, which is there for everybody
            return self._bare(request, Shown("sign-in.html", told, status), headers)
        return self._bare(request, Shown("refused.html", {"status": status, "problem": message}, status), headers)

    def _common(self, request: Request) -> dict[str, Any]:
        theme = cookies.read(request, cookies.THEME)
        return {
            "theme": theme if theme in cookies.THEMES else "",
            "version": __version__,
            "here": _address(request),
            "home": self._door.settings.home,
            "way": labels.way_to_program(self._door.settings.host),
        }


def _address(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    path: str = request.scope["raw_path"].decode("latin-1")
    return path + (f"?{query}" if query else "")


def _go(where: str, *headers: Header) -> Response:
    """Show another page; never one of another server."""
    inside = where if _INSIDE.fullmatch(where) else "/"
    return Response(303, b"", (*HEADERS, (b"location", inside.encode("latin-1", "replace")), *headers))
