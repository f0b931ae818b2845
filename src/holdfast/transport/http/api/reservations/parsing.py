"""What the requests about reservations have in common: the reservation in the path, its space and its proof."""

from __future__ import annotations

import unicodedata
from typing import Any

from holdfast.core.errors import ReservationMissing
from holdfast.core.prefix_rule import check_covers
from holdfast.core.reservation.patterns import problem
from holdfast.core.reservation.row import Reservation
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.idempotency import read_idempotency_key
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.request import Render, Request


async def find_reservation(ctx: HandlerContext, request: Request) -> Reservation:
    """The reservation in the path, if it exists and the key covers its space."""
    account, reservation_id = request.by.account, parse_uuid(request.parameter)

    def query(reader: Reader) -> Reservation | None:
        return None if reservation_id is None else reader.row(Reservation, account, reservation_id)

    row = await ctx.read(query)
    if row is None or not request.by.covers(row.space):
        raise ReservationMissing("there is no such reservation")
    return row


def check_space(checks: Checks, request: Request, space: str) -> None:
    """Check the name of a space, and that the key covers it."""
    checks.check_text(space, "space", bounds.SPACE)
    is_text = bool(space.strip()) and space.isprintable() and unicodedata.is_normalized("NFC", space)
    checks.require(is_text, "space", "`space` must be printable text in Unicode's normal form C, such as owner/name")
    check_covers(request.by, space)


def check_lease_id(checks: Checks, text: str) -> str:
    """A lease id in its usual form."""
    lease_id = parse_uuid(text)
    checks.require(
        lease_id is not None, "lease_id", "`lease_id` must be the UUID from the answer that reserved the files"
    )
    return lease_id or ""


def check_patterns(checks: Checks, paths: list[str]) -> tuple[str, ...]:
    """The patterns of a request, each once."""
    bound = bounds.RESERVED_PATHS
    checks.require(bound.least <= len(paths) <= bound.most, "paths", f"`paths` must have {bound}")
    for place, path in enumerate(paths[: bound.most]):
        found = problem(path)
        checks.require(found is None, f"paths/{place}", f"{path[:80]!r}: {found}")
    return tuple(dict.fromkeys(paths))


def base_fields(request: Request, raw: bytes, render: Render) -> dict[str, Any]:
    """The fields that every command has."""
    once = read_idempotency_key(request, raw, render)
    return {"account": request.by.account, "cause": request.cause(), "once": once}
