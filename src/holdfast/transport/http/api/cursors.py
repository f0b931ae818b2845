"""Cursors of lists: the key of the last row on the previous page."""

from __future__ import annotations

from holdfast.core.errors import Invalid
from holdfast.core.event import subject_of
from holdfast.core.row import Row
from holdfast.store.contract import Reader


def check_known(reader: Reader, row_type: type[Row], account: str, row_id: str) -> None:
    """Refuse a cursor of a row that the account never had; a row that was removed meanwhile is still in the log."""
    subject = subject_of(row_type(account, row_id))
    if reader.row(row_type, account, row_id) is None and not reader.history(account, subject, limit=1):
        raise invalid_cursor()


def invalid_cursor() -> Invalid:
    """The error for a cursor that no page of this list returned."""
    message = "`cursor` must be the `nextCursor` of the previous page"
    return Invalid(message, [{"pointer": "/cursor", "code": "invalid_cursor", "message": message}])
