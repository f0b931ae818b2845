"""Reading reservations: one, a list, and which files a caller may change."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import urlencode

import msgspec

from holdfast.core.lease import is_live, proof_of
from holdfast.core.names import is_storable
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.reservation.patterns import ancestors, path_problem
from holdfast.core.reservation.row import Reservation, is_open, is_waiting, patterns_in
from holdfast.core.row import Instant
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import reservations as advice
from holdfast.transport.deadlines import read_effective
from holdfast.transport.http.api.cursors import invalid_cursor
from holdfast.transport.http.api.reservations.documents import reservation_document
from holdfast.transport.http.api.reservations.parsing import check_space, find_reservation
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response


class CheckBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of check_files."""

    space: str
    paths: list[str]
    lease_ids: list[str] = []


async def read_reservation(ctx: HandlerContext, request: Request) -> Response:
    """A reservation, or how it ended."""
    await ctx.authenticate(request)
    found = await find_reservation(ctx, request)

    def query(reader: Reader) -> tuple[Reservation, Instant]:
        return read_effective(reader, [found])[0], reader.now

    row, now = await ctx.read(query)
    document = reservation_document(row, now)
    document["agent_contract"] = advice.looked_up(is_open=is_open(row))
    return json_response(200, document, NO_STORE)


async def list_reservations(ctx: HandlerContext, request: Request) -> Response:
    """Reservations that are held or waited for, by space and id."""
    await ctx.authenticate(request)
    query = Query(request, bounds.FIELDS["list_reservations"])
    limit = query.number("limit", bounds.RESERVATION_PAGE)
    space, path, owner = (query.text(name) for name in ("space", "path", "owner"))
    after = _parse_cursor(query.text("cursor"))
    query.raise_errors()
    checks = Checks()
    if space is not None:
        check_space(checks, request, space)
    problem = None if path is None else path_problem(path)
    checks.require(problem is None, "path", f"`path`: {problem}")
    checks.require(path is None or space is not None, "path", "`path` needs the `space` that it belongs to")
    checks.raise_errors()
    account, by = request.by.account, request.by

    def matches(row: Reservation, now: Instant) -> bool:
        return (
            (is_live(row, now) or is_waiting(row, now))
            and by.covers(row.space)
            and owner in {None, row.owner}
            and (path is None or any(pattern.matches(path) for pattern in patterns_in(row.paths)))
        )

    def read(reader: Reader) -> tuple[list[Reservation], bool, Instant]:
        found: list[Reservation] = []
        place = after
        while True:
            page = reader.reservations(account, space, place, limit + 1, PAGE_BYTES)
            found += [row for row in read_effective(reader, page) if matches(row, reader.now)]
            if not is_full(page, limit + 1, PAGE_BYTES):
                return found[:limit], len(found) > limit, reader.now
            if is_full(found, limit + 1, PAGE_BYTES):
                return found[:limit], True, reader.now
            place = (page[-1].space, page[-1].id)

    page, more, now = await ctx.read(read)
    cursor = _format_cursor(page[-1]) if more else None
    document: dict[str, Any] = {
        "reservations": [reservation_document(row, now) for row in page],
        "nextCursor": cursor,
        "hasMore": more,
    }
    filters = {"space": space, "path": path, "owner": owner, "limit": limit, "cursor": cursor}
    following = urlencode({name: value for name, value in filters.items() if value is not None}) if more else None
    document["agent_contract"] = advice.listed(page[0].id if page else None, following)
    return json_response(200, document, NO_STORE)


async def check_files(ctx: HandlerContext, request: Request) -> Response:
    """Which files the caller may change: those that no other owner has reserved."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, CheckBody)
    checks = Checks()
    check_space(checks, request, body.space)
    paths = list(dict.fromkeys(body.paths))
    bound = bounds.CHECKED_PATHS
    checks.require(bound.least <= len(body.paths) <= bound.most, "paths", f"`paths` must have {bound}")
    for place, path in enumerate(body.paths[: bound.most]):
        problem = path_problem(path)
        checks.require(problem is None, f"paths/{place}", f"{path[:80]!r}: {problem}")
    most = bounds.CHECKED_LEASES.most
    checks.require(len(body.lease_ids) <= most, "lease_ids", f"`lease_ids` must have {bounds.CHECKED_LEASES}")
    checks.raise_errors()
    account, own = request.by.account, {proof_of(lease_id) for lease_id in body.lease_ids}
    prefixes = list(dict.fromkeys(prefix for path in paths for prefix in ancestors(path)))

    def read(reader: Reader) -> tuple[list[Reservation], Instant]:
        rows = read_effective(reader, reader.reservations_covering(account, body.space, prefixes))
        return [row for row in rows if is_live(row, reader.now)], reader.now

    rows, now = await ctx.read(read)
    files = [_file(path, rows, own, now) for path in paths]
    all_allowed = all(file["allowed"] for file in files)
    document = {"space": body.space, "all_allowed": all_allowed, "files": files}
    if warnings:
        document["warnings"] = warnings
    document["agent_contract"] = advice.checked(all_allowed=all_allowed)
    return json_response(200, document, NO_STORE)


def _file(path: str, rows: list[Reservation], own: set[str], now: Instant) -> dict[str, Any]:
    """Whether a file may be changed, and who has reserved it."""
    covering = [row for row in rows if any(pattern.matches(path) for pattern in patterns_in(row.paths))]
    return {
        "path": path,
        "allowed": all(row.proof in own for row in covering),
        "reserved_by": [{"yours": row.proof in own, **reservation_document(row, now)} for row in covering],
    }


def _format_cursor(row: Reservation) -> str:
    return base64.urlsafe_b64encode(f"{row.space}\n{row.id}".encode()).decode().rstrip("=")


def _parse_cursor(text: str | None) -> tuple[str, str]:
    if not text:
        return "", ""
    try:
        space, _, row_id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("\n")
    except (binascii.Error, ValueError):
        space = row_id = ""
    if not space or not row_id or not is_storable(space + row_id):
        raise invalid_cursor()
    return space, row_id
