"""`GET /locks`: all held locks in one answer, as OctoStore has it. A long list is read and sent page by page."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from urllib.parse import parse_qsl

import msgspec

from holdfast.core.names import ELECTION_PREFIX, lock_name_problem
from holdfast.core.page import is_full
from holdfast.core.prefix_rule import check_covers
from holdfast.store.contract import Reader
from holdfast.transport.advice import locks as lock_advice
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.lock_documents import status_document
from holdfast.transport.http.request import HttpRefusal, Request, Response, encode
from holdfast.transport.http.streams.sending import begin

PAGE, MAX_BYTES = 500, 1024 * 1024
"""Locks, and their bytes, that are read and rendered at once."""


class Page(msgspec.Struct, frozen=True):
    """Some locks, rendered; `last` is the name after which more follow, or None."""

    rendered: bytes
    count: int
    last: str | None


async def list_locks(ctx: HandlerContext, request: Request) -> Response:
    """All held locks whose names are valid in this API."""
    prefix = _parse_prefix(request)
    await ctx.authenticate(request)
    prefix = request.by.name_prefix if prefix is None else prefix
    check_covers(request.by, prefix or "")
    first = await ctx.read_page(partial(_read_page, account=request.by.account, prefix=prefix or "", after=""))
    if first.last is None:
        return Response(200, b'{"locks":[' + first.rendered + _end(first.count, prefix))
    return Response(200, parts=await begin(_render(ctx, request.by.account, prefix, first)))


async def _render(ctx: HandlerContext, account: str, prefix: str | None, page: Page) -> AsyncGenerator[bytes, None]:
    """The answer in parts. The next page is read when the connection has taken the one before."""
    with ctx.stream_limits.lock_lists.acquire(account):
        yield b'{"locks":[' + page.rendered
        count = page.count
        while page.last is not None:
            page = await ctx.read_page(partial(_read_page, account=account, prefix=prefix or "", after=page.last))
            if page.count:
                yield (b"," if count else b"") + page.rendered
                count += page.count
        yield _end(count, prefix)


def _read_page(reader: Reader, account: str, prefix: str, after: str) -> Page:
    """Read and render one page; called in a thread."""
    found = reader.leases(account, prefix, after, PAGE, MAX_BYTES)
    locks = [status_document(lease, 0) for lease in found if _is_listable(lease.id)]
    return Page(encode(locks)[1:-1], len(locks), found[-1].id if is_full(found, PAGE, MAX_BYTES) else None)


def _end(count: int, prefix: str | None) -> bytes:
    """What follows the last lock."""
    return b"]," + encode({"total": count, "prefix": prefix, "agent_contract": lock_advice.listed()})[1:]


def _is_listable(name: str) -> bool:
    return not name.startswith(ELECTION_PREFIX) and lock_name_problem(name) is None


def _parse_prefix(request: Request) -> str | None:
    query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace")
    prefixes = [value for key, value in query if key == "prefix"]
    if len(prefixes) > 1:
        raise HttpRefusal(400, "prefix must be sent only once")
    return prefixes[0].replace("\0", "\ufffd") if prefixes else None
