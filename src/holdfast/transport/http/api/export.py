"""`GET /v1/account/export` exports everything an account has; `DELETE /v1/account` erases it."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from holdfast.core import acl as access
from holdfast.core.errors import Forbidden, Invalid
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.log_gap import check_cursor
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.page import PAGE_BYTES, cut
from holdfast.core.row import Row
from holdfast.core.task import Task
from holdfast.engine.verbs.accounts import CloseAccount
from holdfast.operations.bounds import EXPORT_PAGE
from holdfast.store.contract import Reader
from holdfast.store.rows import ROW_TYPES
from holdfast.transport.advice import accounts as account_advice
from holdfast.transport.advice.contract import check_state
from holdfast.transport.http.api.cursors import check_known, invalid_cursor
from holdfast.transport.http.api.event_documents import public_event_data
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response, raw_json

SECRETS = frozenset(
    {"key_hash", "old_key_hash", "listed_hash", "proof", "ended_proof", "holder", "secret", "old_secret"}
)
"""Columns with secrets and proofs, which are not exported."""
DOCUMENTS = frozenset({"payload", "result", "checkpoint", "ended_checkpoint", "context"})
"""JSON columns that events contain only as a hash; the export contains them in full."""
EVENTS = "events"

_TABLES = {row_type.table: row_type for row_type in ROW_TYPES}
_ORDER = (*_TABLES, EVENTS)


class DeleteBody(msgspec.Struct, forbid_unknown_fields=True):
    """The account's id, so that it is not deleted by mistake."""

    confirm: str


async def export_account(ctx: HandlerContext, request: Request) -> Response:
    """A page of the account's rows, table by table, then of its events; `nextCursor` leads to the next page."""
    await ctx.authenticate(request)
    query = Query(request, ("limit", "cursor"))
    limit = query.number("limit", EXPORT_PAGE)
    table, after = _parse_cursor(query.text("cursor"))
    query.raise_errors()
    records, following = await ctx.read(lambda reader: _read_page(reader, request.by.account, table, after, limit))
    cursor = None if following is None else _format_cursor(*following)
    document: dict[str, Any] = {"records": records, "nextCursor": cursor, "hasMore": cursor is not None}
    document["agent_contract"] = (
        check_state("export_account", query=f"cursor={cursor}") if cursor else account_advice.exported()
    )
    return json_response(200, document, NO_STORE)


async def delete_account(ctx: HandlerContext, request: Request) -> Response:
    """Revoke the account's keys, then erase its data. Rows that other servers still write are erased within an hour."""
    await ctx.authenticate(request)
    body, _, _ = await read_body(request, DeleteBody)
    account = request.by.account
    if account == DEFAULT_ACCOUNT:
        raise Forbidden("the server's own account cannot be deleted")
    if body.confirm != account:
        message = "`confirm` must be the id of this account, as GET /v1/account shows it"
        raise Invalid(message, [{"pointer": "/confirm", "code": "mismatch", "message": message}])
    keys = await ctx.read(lambda reader: reader.principals(account))
    command = CloseAccount(
        account=account,
        cause=request.cause(),
        keys=tuple(key.id for key in keys),
        by=request.by,
        by_hash=request.key_hash,
    )
    for revoked in await ctx.run(command):
        ctx.apply_key_change(revoked, revoked.revoked_at or 0)
    await ctx.erase(account)
    return json_response(200, {"accountId": account, "deleted": True, "agent_contract": account_advice.deleted()})


def _read_page(
    reader: Reader, account: str, table: str, after: str, limit: int
) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
    """Up to `limit` records of one table, in about `PAGE_BYTES` bytes, and the cursor of the next page."""
    if after:
        _check_cursor(reader, account, table, after)
    if table == EVENTS:
        events, more = cut(reader.events(account, int(after or "0"), limit + 1, PAGE_BYTES), limit)
        return [_event_record(event) for event in events], (EVENTS, str(events[-1].seq)) if more else None
    rows, more = cut(reader.rows_after(_TABLES[table], account, after, limit + 1, PAGE_BYTES), limit)
    own = [row for row in rows if row.account == account]
    if more and len(own) == len(rows):
        return [_row_record(row) for row in own], (table, own[-1].id)
    return [_row_record(row) for row in own], (_ORDER[_ORDER.index(table) + 1], "")


def _check_cursor(reader: Reader, account: str, table: str, after: str) -> None:
    if table == EVENTS:
        check_cursor(int(after), *reader.log_bounds(account))
    else:
        check_known(reader, _TABLES[table], account, after)


def _row_record(row: Row) -> dict[str, Any]:
    documents = row.json | DOCUMENTS
    record: dict[str, Any] = {"record": row.noun}
    for name in row.__struct_fields__:
        if name not in SECRETS:
            value = getattr(row, name)
            record[name] = raw_json(value) if name in documents else value
    if isinstance(row, Lease) and row.acl is not None:
        record["acl"] = access.redact(row.acl)
    if isinstance(row, Lease | Task) and row.ended is not None:
        record["ended"] = public_event_data(msgspec.json.decode(row.ended))
    if isinstance(row, Lease | Task) and row.offer is not None:
        record["offer"] = public_event_data(msgspec.json.decode(row.offer))
    return record


def _event_record(event: Event) -> dict[str, Any]:
    data = public_event_data(msgspec.json.decode(event.data))
    return {"record": "event"} | msgspec.structs.asdict(event) | {"data": data}


def _format_cursor(table: str, after: str) -> str:
    return base64.urlsafe_b64encode(f"{table}\n{after}".encode()).decode().rstrip("=")


def _parse_cursor(text: str | None) -> tuple[str, str]:
    if text is None:
        return _ORDER[0], ""
    try:
        table, newline, after = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("\n")
    except ValueError:
        table = newline = after = ""
    if not newline or table not in _ORDER or (table == EVENTS and not (after or "0").isdecimal()) or "\0" in after:
        raise invalid_cursor()
    return table, after
