"""Held work page: all jobs, locks, reservations and tasks that are held now, of one owner or of all."""

from __future__ import annotations

from holdfast.core.holdings.held_by import owner_label
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access.permissions import ACCOUNT
from holdfast.transport.dashboard.held import Holding
from holdfast.transport.dashboard.lists.held_work import MAX_ROWS, held_work
from holdfast.transport.dashboard.lists.paging import Column, make_listing
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse

PAGE_SIZE = 100
KINDS = ("job", "lock", "reservation", "task")
COLUMNS: tuple[Column[Holding], ...] = (
    Column("left", "Time left", lambda each: each.left),
    Column("name", "Name", lambda each: (each.title, each.id)),
    Column("owner", "Owner", lambda each: (each.owner or "", each.title)),
    Column("renewal", "Last renewal", lambda each: each.since_renewal),
    Column("held", "Held for", lambda each: each.since),
    Column("waiting", "Waiting", lambda each: each.waiting, largest_first=True),
)


async def show(request: PageRequest) -> TemplateResponse:
    """Everything that is held, those that expire first at the front."""
    query, engine = request.query, request.ctx.engine
    owner, kind = query.get("owner", ""), query.get("kind", "")
    kind = kind if kind in KINDS else ""
    work = await held_work(request)
    mine = [row for row in work.rows if owner in {"", owner_label(row)}]

    def read_rows(reader: Reader) -> list[Holding]:
        return [each for each in work.holdings(reader, engine, mine) if kind in {"", each.kind}]

    found = await request.ctx.read(read_rows)
    parameters = {name: value for name, value in (("owner", owner), ("kind", kind)) if value}
    variables = {
        "listing": make_listing(found, COLUMNS, query, parameters, PAGE_SIZE),
        "owner": owner,
        "kind": kind,
        "kinds": KINDS,
        "max_rows": 0 if work.is_complete else MAX_ROWS,
    }
    return TemplateResponse("held.html", variables)


PAGE = Page("held", "Held work", "", ACCOUNT, show, parent="now")
