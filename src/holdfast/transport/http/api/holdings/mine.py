"""`/v1/mine`: what the caller's key holds, and its lease ids for a caller that proves to be the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from holdfast.core.errors import Forbidden, Invalid, SessionMissing
from holdfast.core.event_filter import READ_SCOPES
from holdfast.core.holdings.held_by import Holding, is_held_by
from holdfast.core.holdings.lease_ids import is_secret_of
from holdfast.core.lease import Lease
from holdfast.core.page import PAGE_BYTES, cut, record_size
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import mine as mine_advice
from holdfast.transport.deadlines import read_effective
from holdfast.transport.http.api.cursors import check_known, format_position, invalid_cursor, parse_position
from holdfast.transport.http.api.holdings.documents import held_document, with_lease_ids
from holdfast.transport.http.bodies.parsing import field_error
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.request import Request, Response, json_response

SECRET_HEADER = b"holdfast-session-secret"
"""The session's secret. In a URL it would be written into logs."""
_TYPES: dict[str, type[Holding]] = {row_type.table: row_type for row_type in (Session, Lease, Reservation, Task)}
"""In the order of the list."""


class Filter(NamedTuple):
    """What of the caller's is listed."""

    by: Principal
    owner: str | None
    session_id: str | None
    secret: str | None
    """The secret of the session, if the caller sent one."""


class Page(NamedTuple):
    """A page of what a key holds, with effective deadlines."""

    rows: list[Holding]
    session: Session | None
    """The session whose holdings were asked for."""
    next_cursor: str | None
    now: Instant


async def list_mine(ctx: HandlerContext, request: Request) -> Response:
    """What the key of this request holds: sessions, jobs and locks, reservations, tasks."""
    await ctx.authenticate(request)
    query = Query(request, {"owner", "session_id", "limit", "cursor"})
    limit = query.number("limit", bounds.JOB_PAGE)
    cursor = query.text("cursor")
    wanted = Filter(request.by, query.text("owner"), _session_id(query), _read_secret(request))
    query.raise_errors()
    if wanted.secret is not None and wanted.session_id is None:
        message = "the header Holdfast-Session-Secret needs the parameter `session_id`"
        raise Invalid(message, [field_error("/session_id", "missing_session", message)])

    def read(reader: Reader) -> Page:
        with reader.snapshot():  # a session may end, and free what it holds, between two reads
            return _read_page(reader, wanted, cursor, limit)

    page = await ctx.read_page(read)
    held = [held_document(row, page.now) for row in page.rows]
    if wanted.secret is not None and page.session is not None:
        with_lease_ids(held, page.rows, page.session, wanted.secret)
    more = page.next_cursor
    following = None if more is None else urlencode(query.values() | {"cursor": more})
    document = {"held": held, "nextCursor": more, "hasMore": more is not None}
    return json_response(200, document | {"agent_contract": mine_advice.listed(page.rows, following)}, NO_STORE)


# -- reading -----------------------------------------------------------------------------------------------------


def _read_page(reader: Reader, wanted: Filter, cursor: str | None, limit: int) -> Page:
    """The page after a cursor, of what the key may read, in about `PAGE_BYTES` bytes."""
    session = None if wanted.session_id is None else _find_session(reader, wanted, wanted.session_id)
    first, after = (Session.table, "") if cursor is None else parse_position(cursor, _TYPES)
    if after:
        _check_cursor(reader, wanted.by, first, after)
    rows: list[Holding] = []
    number, size, following = limit, PAGE_BYTES, None
    tables = [*_TYPES]
    for table in tables[tables.index(first) :]:
        if not wanted.by.may(READ_SCOPES[_TYPES[table].noun]):
            continue
        found = _read_rows(reader, wanted, session, (table, after), (number + 1, size))
        page, more = cut(found, number, size)
        rows += page
        number, size = number - len(page), max(size - sum(map(record_size, page)), 1)
        if more:
            following = format_position(table, page[-1].id if page else after)
            break
        after = ""
    held = [row for row in rows if is_held_by(row, wanted.by.id, reader.now, wanted.owner)]
    return Page(_effective(reader, held), session, following, reader.now)


def _read_rows(
    reader: Reader, wanted: Filter, session: Session | None, position: tuple[str, str], size: tuple[int, int]
) -> Sequence[Holding]:
    """Rows of one table that sort after an id: of the session, or of the principal."""
    (table, after), (limit, max_bytes) = position, size
    if session is None:
        principal = (wanted.by.account, wanted.by.id)
        return reader.held_by(_TYPES[table], principal, after, limit, max_bytes, owner=wanted.owner)
    key = (session.account, session.id)
    if table == Lease.table:
        return reader.holdings(Lease, key, after, limit, max_bytes)
    if table == Reservation.table:
        return reader.holdings(Reservation, key, after, limit, max_bytes)
    if table == Task.table:
        return reader.holdings(Task, key, after, limit, max_bytes)
    return [session] if session.id > after else []


def _find_session(reader: Reader, wanted: Filter, session_id: str) -> Session:
    """The caller's session; refuses a wrong secret."""
    session = reader.row(Session, wanted.by.account, session_id)
    if session is None or session.principal != wanted.by.id:
        raise SessionMissing("there is no such session")
    if wanted.secret is not None and not is_secret_of(session, wanted.secret):
        raise Forbidden("this is not the session's secret: send the one that opening the session returned")
    return session


def _check_cursor(reader: Reader, by: Principal, table: str, row_id: str) -> None:
    """Refuse a cursor that no page of this list returned. A key must not learn which rows exist that it may not see."""
    is_lease = table == Lease.table
    if not by.may(READ_SCOPES[_TYPES[table].noun]) or (is_lease and not by.covers(row_id)):
        raise invalid_cursor()
    if is_lease or by.name_prefix is None:
        check_known(reader, _TYPES[table], by.account, row_id)


def _effective(reader: Reader, rows: list[Holding]) -> list[Holding]:
    """The rows with their effective deadlines, without those whose session is over."""
    leases = read_effective(reader, [row for row in rows if isinstance(row, Lease)])
    reservations = read_effective(reader, [row for row in rows if isinstance(row, Reservation)])
    tasks = read_effective(reader, [row for row in rows if isinstance(row, Task)])
    sessions = [row for row in rows if isinstance(row, Session)]
    effective: list[Holding] = [*sessions, *leases, *reservations, *tasks]
    return [row for row in effective if row.expires_at is not None and row.expires_at > reader.now]


# -- parsing -----------------------------------------------------------------------------------------------------


def _session_id(query: Query) -> str | None:
    text = query.text("session_id")
    found = None if text is None else parse_uuid(text)
    if text is not None and found is None:
        message = "`session_id` must be a UUID"
        raise Invalid(message, [field_error("/session_id", "invalid", message)])
    return found


def _read_secret(request: Request) -> str | None:
    """The session's secret in its header."""
    secret = request.headers.get(SECRET_HEADER)
    if secret is None:
        return None
    if not 1 <= len(secret) <= bounds.SESSION_SECRET.most or not all(0x20 < byte < 0x7F for byte in secret):
        message = f"Holdfast-Session-Secret must be {bounds.SESSION_SECRET}, visible ASCII only"
        raise Invalid(message, [field_error("", "invalid_header", message)])
    return secret.decode()
