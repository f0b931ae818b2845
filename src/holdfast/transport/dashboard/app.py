"""The dashboard's entry point: routing, access checks, rate limits and the headers of every answer."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from holdfast import __version__
from holdfast.core.errors import Forbidden, HoldfastError, Invalid, RateLimited, Unauthenticated
from holdfast.core.names import is_storable
from holdfast.core.plan import MUTATION, READ
from holdfast.core.principal import Principal
from holdfast.transport.dashboard import labels
from holdfast.transport.dashboard.access import cookies
from holdfast.transport.dashboard.access.forms import RequestGuard, check_token, read_form
from holdfast.transport.dashboard.access.permissions import check_use
from holdfast.transport.dashboard.access.sign_in import SignIn
from holdfast.transport.dashboard.live_updates import LiveUpdates
from holdfast.transport.dashboard.page import LIVE, Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.pages import PAGES, dead_letters, questions
from holdfast.transport.dashboard.reference.pages import Reference, is_reference
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
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"vary", b"accept, cookie"),
)
_HTML = b"text/html; charset=utf-8"
_OWN_ADDRESS = re.compile(r"/(ui(/[^\\\x00-\x20]*)?(\?[^\\\x00-\x20]*)?)?")


class Dashboard:
    """Answers every request under `/` and `/ui`."""

    def __init__(self, ctx: HandlerContext) -> None:
        self._ctx = ctx
        self._guard = RequestGuard(ctx.settings)
        self._sign_in = SignIn(ctx)
        self._live_updates = LiveUpdates(self._sign_in)
        self._reference = Reference(ctx)
        self._static_files = StaticFiles()
        self._pages = {page.name: page for page in PAGES}
        self._templates = Templates(self._static_files, self._pages.keys())

    async def answer(self, request: Request) -> Response:
        """A page, a redirect after a form, a static file or the event stream; an error is a page too."""
        page_request: PageRequest | None = None
        try:
            self._guard.check_host(request)
            path = request.scope["raw_path"].decode("latin-1")
            if path.startswith("/ui/static/"):
                return self._static_files.answer(path.removeprefix("/ui/static/"))
            if request.scope["method"] == "POST":
                return await self._post(request, path)
            if request.scope["method"] not in {"GET", "HEAD"}:
                raise HttpRefusal(405, "use GET or POST", headers=((b"allow", b"GET, HEAD, POST"),))
            if is_reference(path) or path.startswith("/ui/enter/"):
                return self._render_signed_out(request, await self._show_public(request, path))
            page_request = await self._sign_in.authenticate(request)
            if page_request is None:
                raise Unauthenticated("sign in to see this page")
            if path == LIVE:
                return await self._live_updates.answer(page_request)
            await self._charge(page_request, READ)
            return await self._render(page_request, *await self._show(page_request, path))
        except HoldfastError as error:
            return await self._render_error(request, page_request, error)

    # -- requests ------------------------------------------------------------------------------------------------

    def _route(self, path: str) -> tuple[Page, str]:
        """The page of an address, and the id after the page's name."""
        name, _, rest = path.removeprefix("/ui").strip("/").partition("/")
        page = PAGES[0] if not name else self._pages.get(name)
        if page is None:
            raise HttpRefusal(404, "there is no such page")
        item = decode_segment(rest.encode("latin-1"))
        if not is_storable(item):
            raise HttpRefusal(404, "there is no such page")
        return page, item

    async def _show(self, page_request: PageRequest, path: str) -> tuple[Page, TemplateResponse]:
        page, page_request.item = self._route(path)
        _check_page(page, page_request.by)
        show = page.show_one if page_request.item else page.show
        if show is None:
            raise HttpRefusal(404, "there is no such page")
        return page, await show(page_request)

    async def _show_public(self, request: Request, path: str) -> TemplateResponse:
        """A page for everybody."""
        if is_reference(path):
            return await self._reference.answer(request, path)
        return TemplateResponse("sign-in-link.html", {"secret": path.removeprefix("/ui/enter/")})

    async def _post(self, request: Request, path: str) -> Response:
        self._guard.check_sender(request)
        form = await read_form(request)
        if path == "/ui/sign-in":
            return _redirect(form.get("next", "/"), await self._sign_in.sign_in(request, form.get("key", "")))
        if path == "/ui/enter":
            return _redirect("/", await self._sign_in.use_link(request, form.get("secret", "")))
        if path == "/ui/theme":
            return _redirect(form.get("next", "/"), cookies.set_theme(form.get("theme", "")))
        page_request = await self._sign_in.authenticate(request)
        if page_request is None:
            raise Unauthenticated("you have been signed out: sign in again")
        try:
            check_token(form, page_request.token)
            if path == "/ui/sign-out":
                return _redirect("/", await self._sign_in.sign_out(page_request))
            return await self._act(page_request, form, path)
        except HoldfastError as error:
            return await self._render_error(request, page_request, error)

    async def _act(self, page_request: PageRequest, form: dict[str, str], path: str) -> Response:
        """Run the action of a form. If it is refused, its page is shown again with the reason and what was typed."""
        page, page_request.item = self._route(path)
        operation, action = page.actions.get(form.get("act", ""), ("", None))
        if action is None:
            raise HttpRefusal(404, "there is no such action")
        _check_page(page, page_request.by)
        check_use(page_request.by, operation, "your key may read this, but not change it")
        await self._charge(page_request, MUTATION)
        page_request.form = form
        show = page.show_one if page_request.item else page.show
        try:
            done = await action(page_request)
        except HoldfastError as error:
            if show is None:
                raise
            response = await show(page_request)
            variables = response.variables | {"refusal": _message(error), "form": form}
            again = TemplateResponse(response.template, variables, status_of(error))
            return await self._render(page_request, page, again)
        if isinstance(done, TemplateResponse):
            return await self._render(page_request, page, done)
        return _redirect(f"/ui/{page.name}/{segment(page_request.item)}?done={done}")

    async def _charge(self, page_request: PageRequest, limit_class: str) -> None:
        """Count a page as a read of the API's rate limit, and a form as a change."""
        page_request.http.principal = page_request.by
        page_request.http.allowance = await self._ctx.allowance(page_request.account)
        await self._ctx.charge(page_request.http, limit_class)

    # -- answers -------------------------------------------------------------------------------------------------

    async def _render(
        self, page_request: PageRequest, page: Page, response: TemplateResponse, headers: tuple[Header, ...] = ()
    ) -> Response:
        variables = self._common_variables(page_request.http) | {
            "by": page_request.by,
            "token": page_request.token,
            "page": page,
            "navigation": [each for each in PAGES if each.key and each.may_see(page_request.by)],
            "dead_letters": await dead_letters.count_open(page_request),
            "open_questions": await questions.count_open(page_request),
            "layout": "live-layout.html" if page_request.wants_fragments else "layout.html",
            "done": page_request.query.get("done", ""),
            "refusal": "",
            "form": {},
        }
        body = self._templates.render(response.template, variables | response.variables)
        return Response(response.status, body, (*HEADERS, *headers), _HTML)

    def _render_signed_out(
        self, request: Request, response: TemplateResponse, headers: tuple[Header, ...] = ()
    ) -> Response:
        """A page for a browser that is not signed in."""
        variables = self._common_variables(request) | {"layout": "signed-out-layout.html"} | response.variables
        body = self._templates.render(response.template, variables)
        return Response(response.status, body, (*HEADERS, *headers), _HTML)

    async def _render_error(self, request: Request, page_request: PageRequest | None, error: HoldfastError) -> Response:
        status = status_of(error)
        message = _message(error)
        headers: tuple[Header, ...] = error.headers if isinstance(error, HttpRefusal) else ()
        if isinstance(error, RateLimited):
            headers = ((b"retry-after", str(error.retry_after).encode()),)
        is_sign_in = page_request is None and not is_reference(request.scope["path"])
        if isinstance(error, Unauthenticated) or (is_sign_in and isinstance(error, RateLimited)):
            is_form = request.scope["method"] == "POST"
            address = "/" if is_form else _address(request)
            variables = {"next": address, "error": message if is_form else ""}
            if address == "/" and not is_form and b"x-fragments" not in request.headers:
                status = 200  # the sign-in page at `/` is no error
            response = TemplateResponse("sign-in.html", variables, status)
        else:
            # What is absent and what the key may not see get the same page, so it does not repeat the address.
            response = TemplateResponse("error.html", {"status": status, "error": message, "address": "/"}, status)
            if page_request is not None:
                page = replace(PAGES[0], name="", title="Error")
                return await self._render(page_request, page, response, headers)
        return self._render_signed_out(request, response, headers)

    def _common_variables(self, request: Request) -> dict[str, Any]:
        theme = cookies.read(request, cookies.THEME)
        return {
            "theme": theme if theme in cookies.THEMES else "",
            "version": __version__,
            "address": _address(request),
            "home": self._ctx.settings.home,
            "path_assignment": labels.path_for_commands(self._ctx.settings.host),
        }


def _message(error: HoldfastError) -> str:
    """Why a request was refused; of a form with several wrong fields, all of them."""
    wrong = [each["message"] for each in error.errors] if isinstance(error, Invalid) else []
    return "; ".join(dict.fromkeys(wrong)) or code_and_message(error, status_of(error))[1]


def _check_page(page: Page, by: Principal) -> None:
    """Refuse a key that may not open a page."""
    check_use(by, page.operation, "your key may not open this page")
    if not page.may_see(by):
        raise Forbidden("only keys of the server's own account may open this page")


def _address(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    path: str = request.scope["raw_path"].decode("latin-1")
    return path + (f"?{query}" if query else "")


def _redirect(address: str, *headers: Header) -> Response:
    """Redirect to a page of this dashboard; any other address becomes `/`."""
    own = address if _OWN_ADDRESS.fullmatch(address) else "/"
    return Response(303, b"", (*HEADERS, (b"location", own.encode("latin-1", "replace")), *headers))
