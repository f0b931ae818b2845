"""Cursors of lists: the key of the last row on the previous page."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from holdfast.core.errors import Invalid
from holdfast.core.event import subject_of
from holdfast.core.row import Row
from holdfast.store.contract import Reader


def check_known(reader: Reader, row_type: type[Row], account: str, row_id: str) -> None:
    """Refuse a cursor of a row that the account never had; a row that was removed meanwhile is still in the log."""
    subject = subject_of(row_type(account, row_id))
    if reader.row(row_type, account, row_id) is None and not reader.history(account, subject, limit=1):
        raise invalid_cursor()


def format_position(table: str, row_id: str) -> str:
    """The cursor of a list with rows of several tables: it continues after a row of one of them."""
    return base64.urlsafe_b64encode(f"{table}\n{row_id}".encode()).decode().rstrip("=")


def parse_position(cursor: str, tables: Iterable[str]) -> tuple[str, str]:
    """(table, id of a row); refuses a cursor that is not of a list of these tables."""
    try:
        table, separator, row_id = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition("\n")
    except ValueError:
        table = separator = row_id = ""
    if table not in tables or not separator or "\0" in row_id:
        raise invalid_cursor()
    return table, row_id


def invalid_cursor() -> Invalid:
    """The error for a cursor that no page of this list returned."""
    message = "`cursor` must be the `nextCursor` of the previous page"
    return Invalid(message, [{"pointer": "/cursor", "code": "invalid_cursor", "message": message}])
