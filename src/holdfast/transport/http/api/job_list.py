"""The list of jobs: those that are held, or those that are done."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

from holdfast.core.lease import DONE, Lease
from holdfast.core.names import is_job_id, is_storable, normal_job_id
from holdfast.core.page import PAGE_BYTES, is_full, record_size
from holdfast.core.prefix_rule import check_covers
from holdfast.core.row import Instant
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import jobs as job_advice
from holdfast.transport.deadlines import read_effective
from holdfast.transport.http.api.cursors import check_known, invalid_cursor
from holdfast.transport.http.api.job_documents import CLAIMED, done_document, ownership
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response


async def list_claimed_jobs(ctx: HandlerContext, request: Request) -> Response:
    """Jobs that are held now, or those that are done, by id."""
    await ctx.authenticate(request)
    query = dict(parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace"))
    checks = Checks()
    digits = query.get("limit", str(bounds.JOB_PAGE.default))
    limit = int(digits) if re.fullmatch("[0-9]{1,6}", digits) else 0
    checks.check_range(limit, "limit", bounds.JOB_PAGE)
    prefix = normal_job_id(query.get("prefix", request.by.name_prefix or ""))
    check_covers(request.by, prefix)
    checks.require(is_storable(prefix), "prefix", "`prefix` must not contain U+0000")
    state = query.get("state", CLAIMED)
    checks.require(state in {CLAIMED, DONE}, "state", f"`state` must be {CLAIMED} or {DONE}")
    after = _parse_cursor(query.get("cursor", ""))
    if after and not request.by.covers(after):  # such a key must not learn which other names exist
        raise invalid_cursor()
    checks.raise_errors()
    account = request.by.account

    def query_jobs(reader: Reader) -> tuple[list[Lease], bool, Instant]:
        if after:
            check_known(reader, Lease, account, after)
        found, more = _read_jobs(reader, account, prefix, after, limit, done=state == DONE)
        return read_effective(reader, found), more, reader.now

    page, more, now = await ctx.read(query_jobs)
    waiters = ctx.engine.name_waiters
    jobs = [
        done_document(lease)
        if state == DONE
        else ownership(CLAIMED, lease, now) | {"waiting": waiters.length(lease.key)}
        for lease in page
    ]
    document: dict[str, Any] = {
        "jobs": jobs,
        "nextCursor": _format_cursor(page[-1].id) if more else None,
        "hasMore": more,
    }
    filters = {"prefix": prefix, "limit": limit} | ({"state": DONE} if state == DONE else {})
    following = urlencode(filters | {"cursor": _format_cursor(page[-1].id)}) if more else None
    document["agent_contract"] = job_advice.listed(page[0].id if page else None, following)
    return json_response(200, document, ((b"cache-control", b"no-store"),))


def _read_jobs(
    reader: Reader, account: str, prefix: str, after: str, limit: int, *, done: bool
) -> tuple[list[Lease], bool]:
    """A page of claimed or done jobs, and whether there are more; the store may have names that are no job ids."""
    found: list[Lease] = []
    size = 0
    while True:
        page = reader.leases(account, prefix, after, limit + 1, PAGE_BYTES, done=done)
        for lease in page:
            if is_job_id(lease.id):
                if len(found) == limit or size >= PAGE_BYTES:
                    return found, True
                found.append(lease)
                size += record_size(lease)
        if not is_full(page, limit + 1, PAGE_BYTES):
            return found, False
        after = page[-1].id


def _format_cursor(job_id: str) -> str:
    return base64.urlsafe_b64encode(job_id.encode()).decode().rstrip("=")


def _parse_cursor(cursor: str) -> str:
    try:
        after = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        after = "\0"
    if not is_storable(after):
        raise invalid_cursor()
    return after
