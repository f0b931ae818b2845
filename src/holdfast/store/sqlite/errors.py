"""SQLite's errors as Holdfast's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

import apsw

from holdfast.core.errors import StoreFull, StoreUnavailable, Trouble, ValueRefused


class _TranslateErrors(AbstractContextManager[None]):
    """Raises Holdfast's errors instead of SQLite's. One that is raised before COMMIT means that nothing was changed."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or isinstance(error, Trouble):
            return
        if isinstance(error, apsw.FullError):
            raise StoreFull("the disk is full") from error
        if isinstance(error, _REFUSED_VALUES):
            raise ValueRefused(f"the database refused a value: {error}") from error
        if isinstance(error, (apsw.Error, OSError)):
            raise StoreUnavailable(f"the database file cannot be used: {error}") from error


_REFUSED_VALUES = (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError, OverflowError, UnicodeError)
TRANSLATE_ERRORS = _TranslateErrors()
"""One for all, and no generator: each batch enters it."""
