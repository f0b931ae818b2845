"""`/v1/account/dashboard-link`: whoever has a key may look with a browser, without typing the key into one."""

from __future__ import annotations

from holdfast.core.acl import hash_token
from holdfast.core.browser_session import LINK_LIFETIME
from holdfast.core.row import SECOND
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.dashboard.sign_in_link import make_link
from holdfast.transport.http.api.accounts import NoBody
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response, warned


async def link_dashboard(ctx: HandlerContext, request: Request) -> Response:
    """A link that signs a browser in once, as whoever asked, for as long as the key that was sent works."""
    await ctx.authenticate(request)
    _, warnings, _ = await read_body(request, NoBody)
    principal, key_hash = request.by, hash_token(request.secret.decode("latin-1"))
    now = await ctx.read(lambda reader: reader.now)
    url = await ctx.beside_the_log(lambda store: make_link(store, ctx.settings, principal, key_hash, now))
    document = {
        "url": url,
        "expires_in_seconds": LINK_LIFETIME // SECOND,
        "agent_contract": task_advice.create_or_claim(),
    }
    return json_response(201, warned(document, warnings), NO_STORE)
