"""`/v1/account/dashboard-link`: whoever has a key may look with a browser, without typing the key into one."""

from __future__ import annotations

from holdfast.core import task_contract
from holdfast.core.acl import hash_token
from holdfast.core.badge import INVITED
from holdfast.core.row import SECOND
from holdfast.transport.dashboard.invitation import link
from holdfast.transport.http.accounts import NoBody
from holdfast.transport.http.door import Door
from holdfast.transport.http.message import Request, Response, json_response, warned
from holdfast.transport.http.problem import read_body
from holdfast.transport.http.query import NO_STORE


async def link_dashboard(door: Door, request: Request) -> Response:
    """A link that signs a browser in once, as whoever asked, for as long as the key that was sent works."""
    await door.authenticate(request)
    _, warnings, _ = await read_body(request, NoBody)
    guest, key_hash = request.by, hash_token(request.secret.decode("latin-1"))
    now = await door.read(lambda reader: reader.now)
    url = await door.beside_the_log(lambda store: link(store, door.settings, guest, key_hash, now))
    document = {"url": url, "expires_in_seconds": INVITED // SECOND, "agent_contract": task_contract.go_on()}
    return json_response(201, warned(document, warnings), NO_STORE)
